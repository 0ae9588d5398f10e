"""Studies of one's own that a home remembers: the text of each as of its last run, and the path of its file."""

import json
from pathlib import Path

from headstream.tasks import places
from headstream.tasks.files.system_errors import disk_errors_explained
from headstream.tasks.files.whole_files import written_whole
from headstream.tasks.study.sources import StudyFile


def remembered_studies() -> set[str]:
    """Names of the remembered studies."""
    return {path.stem for path in places.studies_folder().glob("[!.]*.json")}


def remembered(name: str) -> StudyFile | None:
    """A study as it was when it last ran; None if no study of that name has."""
    try:
        kept = json.loads(_kept(name).read_bytes())
        path = Path(kept["path"]) if kept["path"] else None
        return StudyFile(path.name if path else f"the study {name}", str(kept["text"]), path)
    except (OSError, ValueError, LookupError, TypeError):  # there is none, or none that can be read
        return None


def remember(name: str, file: StudyFile) -> None:
    """Remember a study under a name from now on; for a study that ships, nothing is kept.

    Raises:
        WorkError: the home can't be written.
    """
    kept = _kept(name)
    with disk_errors_explained(places.home()):
        if file.ships:
            kept.unlink(missing_ok=True)
            return
        kept.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(kept) as unfinished:
            unfinished.write_text(json.dumps({"path": str(file.path) if file.path else None, "text": file.text}))


def _kept(name: str) -> Path:
    return places.studies_folder() / f"{name}.json"
