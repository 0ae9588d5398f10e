"""Reserves a name for one study: a different study of that name is refused, unless it is to replace the first."""

from collections.abc import Mapping
from typing import Any

from headstream.tasks.errors import UserError
from headstream.tasks.studies.known_studies import find_study, known_studies
from headstream.tasks.studies.remembered_studies import remember, remembered
from headstream.tasks.study.schema import Study, complete_study, read_study
from headstream.tasks.study.sources import StudyFile, shipped


def study_from_prefect(study: str | Mapping[str, Any] | Study) -> tuple[Study, StudyFile]:
    """A study that was sent through Prefect, by name or in full, and its file.

    Raises:
        UserError: no study has that name, or it isn't valid.
    """
    if isinstance(study, str) and study in known_studies():
        file = find_study(study)
        return read_study(file), file
    study = complete_study(study)
    return study, study_file_of(study)


def study_file_of(study: Study) -> StudyFile:
    """The file to remember for a study that came without one: a shipped study's own, if it is the same study."""
    ships = shipped(study.name)
    if ships and read_study(ships).recorded == study.recorded:
        return ships
    return StudyFile(f"the study {study.name}", study.written)


def conflicting_study(study: Study, file: StudyFile) -> str:
    """Say where a different study of the same name comes from; empty if there is none.

    The same file is the same study, however it was edited, and so are files that ask for the same.
    """
    holder = remembered(study.name) or shipped(study.name)
    if holder is None or holder.path == file.path:
        return ""
    try:
        if read_study(holder).recorded == study.recorded:
            return ""
    except UserError:  # this release can't read it any more
        pass
    if holder.ships:
        return "ships"
    if holder.path is None:
        return "came through Prefect"
    return f"{'is' if holder.path.is_file() else 'was'} in {holder.path}"


def reserve_name(study: Study, file: StudyFile, *, replace: bool = False) -> None:
    """Reserve a study's name for it in this home.

    Raises:
        UserError: a different study has that name, and is not to be replaced.
    """
    where = "" if replace else conflicting_study(study, file)
    if where:
        raise UserError(
            f"{file.label} uses the name {study.name!r}, but a different study of that name {where}. Change the name,"
            " or replace that study and its results: `--replace`."
        )
    remember(study.name, file)
