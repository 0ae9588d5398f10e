"""Files that installed packages hold, found without importing a package."""

from importlib.metadata import PackageNotFoundError, PackagePath, files

from headstream.tasks.errors import UserError


def installed_files(package: str, holds: str, command: str) -> list[PackagePath]:
    """Every file of an installed package.

    Raises:
        UserError: it isn't installed; the message says what it holds and the command that installs it.
    """
    try:
        return files(package) or []
    except PackageNotFoundError:
        raise UserError(
            f"the package {package} must be installed, which holds {holds}, but isn't. Install it: {command}"
        ) from None
