"""What of the surroundings of a command must not reach its processes, their talk with each other or its output."""

import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path

from headstream.tasks.errors import UserError

THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


def shut_out_surroundings() -> None:
    """Have child processes import nothing from the folder a command is typed in, read UTF-8, and talk without a proxy.

    In that folder, `models` or `typing.py` of the user's would be imported instead of what is meant; and torch's own
    files are UTF-8, which it would read in the locale's encoding.
    """
    os.environ |= {"PYTHONSAFEPATH": "1", "PYTHONUTF8": "1"}
    reach_directly(*THIS_MACHINE)


def keep_prefect_in(*folders: Path) -> None:
    """Have Prefect keep its database in the first of some folders that can be written; profiles stay the user's.

    PREFECT_HOME comes before them. In ~/.prefect, Prefect's own choice, there may be a database of another version,
    or nothing may be written at all.
    """
    if given := os.environ.get("PREFECT_HOME"):
        os.environ["PREFECT_HOME"] = os.path.abspath(os.path.expanduser(given))  # its server starts elsewhere
        return
    profiles = os.path.expanduser("~/.prefect/profiles.toml")
    if os.access(profiles, os.R_OK):
        os.environ.setdefault("PREFECT_PROFILES_PATH", profiles)
    for folder in folders:
        os.environ["PREFECT_HOME"] = os.path.abspath(folder)
        with suppress(OSError):  # of the last folder, what writes there tells
            folder.mkdir(parents=True, exist_ok=True)  # Prefect makes no parents
            if os.access(folder, os.W_OK):
                return


def reach_directly(*hosts: str) -> None:
    """Have no proxy asked for pages of some hosts."""
    given = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    known = [host for host in given.split(",") if host]
    # Programs differ in which of the two they read.
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(dict.fromkeys([*known, *hosts]))


def print_any_letter() -> None:
    """Have letters printed whatever the locale is: as UTF-8, or escaped on a terminal that lacks them.

    What was closed leads nowhere: the next file opened would take its place, and be printed into.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")


def require_folder() -> None:
    """Refuse to begin in a folder that was removed, where torch's libraries can't be loaded.

    Raises:
        UserError: it was removed.
    """
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise UserError("the current folder must exist, got one that was removed. Go to another.") from error
