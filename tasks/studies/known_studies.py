"""Finds the study that a name or path refers to: one that ships, one that this home knows, or a file."""

import json
import os
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from headstream.tasks import places
from headstream.tasks.errors import UserError
from headstream.tasks.storage.latest_records import latest_record, latest_records
from headstream.tasks.storage.store import Store
from headstream.tasks.studies.remembered_studies import remembered, remembered_studies
from headstream.tasks.study.names import STUDY_NAME
from headstream.tasks.study.sources import StudyFile, read_study_file, shipped, shipped_studies, unknown_study


def known_studies() -> list[str]:
    """Names of the studies that ship, then of all others that were started here."""
    ship = shipped_studies()
    own = remembered_studies() | latest_records(Store(places.store_folder())).keys()
    return ship + sorted(own.difference(ship))


def find_study(name_or_path: str) -> StudyFile:
    """The study that a name or path refers to.

    Raises:
        UserError: there is none, or its file can't be read.
    """
    known = _known(name_or_path) if re.fullmatch(STUDY_NAME, name_or_path) else None
    if known:
        return known
    path = Path(os.path.abspath(os.path.expanduser(name_or_path)))
    if os.path.isfile(path):
        return read_study_file(path)
    raise unknown_study("study or study file", name_or_path, known_studies())


def _known(name: str) -> StudyFile | None:
    file = remembered(name)
    if file:
        return _current_version(name, file)
    file = shipped(name)
    if file:
        return file
    record = latest_record(Store(places.store_folder()), name)
    return StudyFile(f"the record of {name}", json.dumps(record.manifest.config["study"])) if record else None


def _current_version(name: str, file: StudyFile) -> StudyFile:
    """A remembered study as its file has it now, or as it was if the file no longer holds it."""
    if file.path is None:
        return file
    if not os.path.isfile(file.path):
        return replace(file, note=f"{file.path} is gone, so {name} is taken as it was when it last ran")
    now = read_study_file(file.path)
    with suppress(UserError):  # a mistake in the file, which reading the study will report
        found = now.content().get("name", name)
        if found != name:
            return replace(file, note=f"{file.path} holds {found!r} now, so {name} is taken as it was when it last ran")
    return now
