"""A name is one study's: another one of that name is refused, unless it is to take the first one's place."""

from collections.abc import Mapping
from typing import Any

from headstream.tasks.errors import UserError
from headstream.tasks.studies.known_studies import find_study, known_studies
from headstream.tasks.studies.remembered_studies import remember, remembered
from headstream.tasks.study.schema import Study, complete_study, read_study
from headstream.tasks.study.sources import StudyFile, shipped


def study_from_prefect(study: str | Mapping[str, Any] | Study) -> tuple[Study, StudyFile]:
    """A study that came through Prefect, by its name or whole, and its file.

    Raises:
        UserError: no study has that name, or it isn't valid.
    """
    if isinstance(study, str) and study in known_studies():
        file = find_study(study)
        return read_study(file), file
    study = complete_study(study)
    return study, study_file_of(study)


def study_file_of(study: Study) -> StudyFile:
    """What to remember of a study that came without a file: the one that ships, if it is that."""
    ships = shipped(study.name)
    if ships and read_study(ships).recorded == study.recorded:
        return ships
    return StudyFile(f"the study {study.name}", study.written)


def conflicting_study(study: Study, file: StudyFile) -> str:
    """Where another study of that name is from; empty if there is none.

    The same file is the same study, however it was edited, and so are files that ask the same.
    """
    holder = remembered(study.name) or shipped(study.name)
    if holder is None or holder.path == file.path:
        return ""
    try:
        if read_study(holder).recorded == study.recorded:
            return ""
    except UserError:  # what it was is no study to this release
        pass
    if holder.ships:
        return "ships"
    if holder.path is None:
        return "came through Prefect"
    return f"{'is' if holder.path.is_file() else 'was'} in {holder.path}"


def reserve_name(study: Study, file: StudyFile, *, replace: bool = False) -> None:
    """Have a study's name stand for it in this home.

    Raises:
        UserError: it is another study's, which is not to be replaced.
    """
    if not replace and (where := conflicting_study(study, file)):
        raise UserError(
            f"each study must have a name of its own, got {study.name!r} in {file.label}, but the study of that name"
            f" {where}. Change the name, or replace that study and its results: `--replace`."
        )
    remember(study.name, file)
