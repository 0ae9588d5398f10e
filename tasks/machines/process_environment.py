"""Keeps a command's surroundings (folder, locale, proxies, another Prefect) from disturbing its processes."""

import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path

from headstream.tasks.errors import UserError

THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


def isolate_child_processes() -> None:
    """Have child processes import nothing from the current folder, read UTF-8, and reach this machine without a proxy.

    A `models` folder or a `typing.py` there would be imported instead of the one that is meant; and torch would read
    its own files, which are UTF-8, in the locale's encoding.
    """
    os.environ |= {"PYTHONSAFEPATH": "1", "PYTHONUTF8": "1"}
    bypass_proxies(*THIS_MACHINE)


def choose_prefect_home(*folders: Path) -> None:
    """Have Prefect keep its database in the first of these folders that is writable; profiles stay the user's.

    PREFECT_HOME takes precedence. Prefect's own choice, ~/.prefect, may hold a database of another version, or be
    read-only.
    """
    given = os.environ.get("PREFECT_HOME")
    if given:
        os.environ["PREFECT_HOME"] = os.path.abspath(os.path.expanduser(given))  # its server starts elsewhere
        return
    profiles = os.path.expanduser("~/.prefect/profiles.toml")
    if os.access(profiles, os.R_OK):
        os.environ.setdefault("PREFECT_PROFILES_PATH", profiles)
    for folder in folders:
        os.environ["PREFECT_HOME"] = os.path.abspath(folder)
        with suppress(OSError):  # if the last folder fails too, Prefect's own error will say so
            folder.mkdir(parents=True, exist_ok=True)  # Prefect makes no parents
            if os.access(folder, os.W_OK):
                return


def bypass_proxies(*hosts: str) -> None:
    """Reach some hosts directly, without a proxy."""
    given = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    known = [host for host in given.split(",") if host]
    # Programs differ in which of the two variables they read.
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(dict.fromkeys([*known, *hosts]))


def configure_output() -> None:
    """Print any character in any locale: as UTF-8, or escaped on a terminal that lacks it.

    Closed streams are sent to /dev/null: otherwise the next file opened would take their descriptor and be printed to.
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


def require_current_folder() -> None:
    """Refuse to start in a deleted folder, from which torch's libraries can't be loaded.

    Raises:
        UserError: the current folder was deleted.
    """
    try:
        os.getcwd()
    except FileNotFoundError as error:
        raise UserError("the current folder was deleted. Change to another one.") from error
