"""The state of each study, read from manifests alone to be quick: no file is verified, no code version compared."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headstream.tasks.errors import UserError
from headstream.tasks.storage.artifact import Artifact
from headstream.tasks.storage.latest_records import latest_records
from headstream.tasks.storage.store import Store
from headstream.tasks.studies.known_studies import find_study, known_studies
from headstream.tasks.study.schema import Study, read_study

SHIPS = "ships"


@dataclass(frozen=True)
class StudyState:
    """A study's line in a list of all."""

    name: str
    n_models: int | None  # None if the study can't be read
    state: str
    asks: str  # its question, or the reason why it can't be read
    source: str  # the place of its file


def study_states(store: Store) -> Iterator[StudyState]:
    """Every study of one's own that was started here, and then every one that ships."""
    records, made = latest_records(store), _Made(store)
    states = [_state_of(name, records, made) for name in known_studies()]
    yield from sorted(states, key=lambda study: study.source == SHIPS)


def study_state(store: Store, name: str) -> StudyState:
    """The state of one study."""
    return _state_of(name, latest_records(store), _Made(store))


def _state_of(name: str, records: Mapping[str, Artifact], made: "_Made") -> StudyState:
    try:
        file = find_study(name)
        study = read_study(file)
    except UserError as error:
        return StudyState(name, None, "can't be read", str(error), "")
    place = _short(file.path) if file.path else "no file"
    source = SHIPS if file.ships else place
    state = _state(study, records.get(name), made)
    return StudyState(name, study.n_models, state, study.question, f"{source}, gone" if file.note else source)


def _state(study: Study, record: Artifact | None, made: "_Made") -> str:
    if record and study.is_recorded_as(record.manifest.config["study"]):
        failed = len(record.manifest.config["failures"])
        return f"{failed} of {study.n_models} failed" if failed else "done"
    n_trained = made.count(study)
    state = f"{n_trained} of {len(study.cells)} trained" if n_trained else "not run"
    return f"edited since it ran; {state}" if record else state


class _Made:
    """The models of a store, by their settings and by the digest of the tokens that they were trained on."""

    def __init__(self, store: Store) -> None:
        self._corpora = [
            (artifact.manifest.config["corpus"], artifact.digest) for artifact in store.artifacts("corpus")
        ]
        self._tokens = [
            (a.manifest.config, a.manifest.inputs["corpus"].digest, a.digest) for a in store.artifacts("tokens")
        ]
        self._models = {
            (_as_text(a.manifest.config), a.manifest.inputs["tokens"].digest) for a in store.artifacts("training")
        }

    def count(self, study: Study) -> int:
        """Number of a study's models that have been trained on its text."""
        corpus, tokenizer = study.corpus.model_dump(mode="json"), study.tokenizer.model_dump(mode="json")
        texts = {digest for config, digest in self._corpora if config == corpus}
        tokens = {digest for config, of, digest in self._tokens if config == tokenizer and of in texts}
        if not tokens:
            return 0
        trained = {cell for cell, digest in self._models if digest in tokens}
        return sum(_as_text(cell.trained_as) in trained for cell in study.cells)


def _as_text(config: Mapping[str, Any]) -> str:
    return json.dumps(config, sort_keys=True)


def _short(path: Path) -> str:
    """A path with `~` for the user's folder."""
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)
