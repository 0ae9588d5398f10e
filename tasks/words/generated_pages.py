"""Pages whose top is written by hand and whose rest, below a mark that names the command, is generated."""

from pathlib import Path


def rewrite_below(mark: str, page: Path, text: str) -> None:
    """Replace everything below the mark."""
    page.write_text(page.read_text(encoding="utf-8").partition(mark)[0] + f"{mark}\n{text}", encoding="utf-8")
