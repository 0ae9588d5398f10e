"""Prefect's database without runs, which takes its server ten seconds to make: tests share one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from filelock import FileLock

DATABASE = "prefect.db"


def shared_folder(basetemp: Path) -> Path:
    """The temporary folder of all processes that run tests at the same time."""
    return basetemp.parent if "PYTEST_XDIST_WORKER" in os.environ else basetemp


def put_prefect_database(shared: Path, folder: Path) -> None:
    """Put the database, which is made in the shared folder once, into one that is to be a PREFECT_HOME."""
    made = shared / "prefect-database"
    made.mkdir(exist_ok=True)
    with FileLock(made / "lock"):
        if not (made / "is-made").exists():
            command = [Path(sys.executable).parent / "prefect", "server", "database", "upgrade", "-y"]
            clean = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
            environment = clean | {"PREFECT_HOME": str(made)}
            subprocess.run(command, env=environment, capture_output=True, check=True)
            (made / "is-made").touch()
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(made / DATABASE, folder)
