"""Writes the tree of folders and modules in CONTRIBUTING.md: `python -m headstream.tasks.words.code_tree`."""

import ast
from collections.abc import Iterator
from pathlib import Path

from headstream.tasks.places import ROOT
from headstream.tasks.words.generated_pages import rewrite_below

CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PAGE_MARK = "<!-- What follows is written by `python -m headstream.tasks.words.code_tree`. -->\n"
FOLDERS = ("headstream", "flows", "tasks", "models", "benchmarks", "calibration", "faults")


def code_tree(root: Path = ROOT) -> str:
    """Every package with what is in it, each by the first line of its docstring, as CONTRIBUTING.md lists them."""
    lines = [line for folder in FOLDERS for line in _package(root / folder, 0)]
    return "\n".join(["```", *lines, "```"]) + "\n"


def _package(folder: Path, depth: int) -> Iterator[str]:
    """A package, its modules, and the packages in it; one that is a link is listed where it lies."""
    yield _entry(f"{folder.name}/", folder / "__init__.py", depth, width=0)
    modules = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
    width = max((len(path.name) for path in modules), default=0)
    for module in modules:
        yield _entry(module.name, module, depth + 1, width)
    for inner in sorted(path for path in folder.iterdir() if (path / "__init__.py").is_file()):
        if not inner.is_symlink():
            yield from _package(inner, depth + 1)


def _entry(name: str, source: Path, depth: int, width: int) -> str:
    docstring = ast.get_docstring(ast.parse(source.read_bytes())) or ""
    return f"{'  ' * depth}{name:{width}}  {docstring.partition(chr(10))[0]}".rstrip()


if __name__ == "__main__":
    rewrite_below(PAGE_MARK, CONTRIBUTING, code_tree())
