"""The code that produced a result: the checkout's commit, and versions of packages."""

import subprocess
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version

from headstream.tasks import places


@lru_cache(maxsize=1)
def git_commit() -> str | None:
    """The commit of this checkout, with "+changes" when tracked files differ from it; None outside a checkout."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(places.ROOT), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
        return done.stdout.strip()

    try:
        commit = git("rev-parse", "--short=12", "HEAD")
        return commit + ("+changes" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def package_version(package: str) -> str | None:
    """The installed version of a package; None when it isn't installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
