"""Pages whose top is written by hand and whose rest is generated, below a mark that says by which command."""

from pathlib import Path


def rewrite_below(mark: str, page: Path, text: str) -> None:
    """Replace what stands below the mark."""
    page.write_text(page.read_text(encoding="utf-8").partition(mark)[0] + f"{mark}\n{text}", encoding="utf-8")
