"""Files of installed packages, found without importing the package."""

from importlib.metadata import PackageNotFoundError, PackagePath, files

from headstream.tasks.errors import UserError


def installed_files(package: str, holds: str, command: str) -> list[PackagePath]:
    """Every file of an installed package.

    Raises:
        UserError: it isn't installed; the message names what it holds and the command that installs it.
    """
    try:
        return files(package) or []
    except PackageNotFoundError:
        raise UserError(
            f"the package {package}, which holds {holds}, is not installed. Install it: {command}"
        ) from None
