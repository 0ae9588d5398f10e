"""Paths of files that ship with the code, and of those that runs write below HEADSTREAM_HOME."""

import os
from importlib.metadata import version
from pathlib import Path

from platformdirs import user_data_path

ROOT = Path(__file__).resolve().parents[1]  # the repository or, where Headstream is installed, its package
STUDIES = ROOT / "flows" / "studies"
CLAIMS = ROOT / "reports" / "claims"


def home() -> Path:
    """The folder that data/ and reports/ are written in.

    HEADSTREAM_HOME if it is set, else the repository; a user's data folder where Headstream is installed without it.
    """
    own = ROOT if (ROOT / "pyproject.toml").is_file() else user_data_path("headstream")
    return Path(os.environ.get("HEADSTREAM_HOME") or own).expanduser().resolve()


def store_folder() -> Path:
    """The folder of the artifact store, the record of everything computed."""
    return home() / "data" / "store"


def warehouse_file() -> Path:
    """The file of the warehouse, the DuckDB index over the store's tables."""
    return home() / "data" / "warehouse.duckdb"


def studies_folder() -> Path:
    """The folder that holds what is remembered of studies that don't ship: their text, and where they came from."""
    return home() / "data" / "studies"


def running_folder() -> Path:
    """The folder in which runs leave how far they are, for `headstream watch`."""
    return home() / "data" / "running"


def report_folder(study: str) -> Path:
    """The folder that a study's report is published in."""
    return home() / "reports" / "generated" / study


def prefect_folder() -> Path:
    """The folder of Prefect's database in HEADSTREAM_HOME: of `headstream up`, and of `run` where there is no cache."""
    return home() / "data" / "prefect"


def prefect_cache() -> Path:
    """The folder of the database of Prefect's temporary servers, one for all of a user's HEADSTREAM_HOMEs.

    To make such a database takes Prefect twenty seconds.
    """
    return _cache() / f"prefect-{version('prefect')}"


def template_cache() -> Path:
    """The folder of warehouses without rows, from which each index begins."""
    return _cache() / "warehouses"


def log_folder() -> Path:
    """The folder of the logs of runs, and of all that `headstream up` runs."""
    return home() / "data" / "logs"


def remembered_folder() -> Path:
    """The folder of what is remembered of files, so that they needn't be read again: hashes, by stamps of the files."""
    return home() / "data" / "remembered"


def compiler_cache() -> Path:
    """The folder in which torch.compile keeps code that later processes load and run."""
    return home() / "data" / "compiled"


def corpus_roots() -> list[Path]:
    """The folders that a study sent through Prefect's API may read: HEADSTREAM_CORPUS_ROOTS, else corpora/."""
    named = os.environ.get("HEADSTREAM_CORPUS_ROOTS")
    return [Path(root).expanduser() for root in named.split(os.pathsep) if root] if named else [home() / "corpora"]


def _cache() -> Path:
    """The folder of what all of a user's HEADSTREAM_HOMEs share, and what can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "headstream"
