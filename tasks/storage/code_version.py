"""The version of a stage's code: a hash that changes with what it may compute, and not with its comments."""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.util import resolve_name
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "headstream"

_parsing = Lock()  # CPython 3.11 raises SystemError when two threads parse at once


@cache
def code_version(module: str, root: Path = ROOT) -> str:
    """A hash (16 hex digits) of the syntax trees of a module and of all project modules that it reaches by import.

    Comments, docstrings and layout don't count. Python versions differ in it.

    Raises:
        ModuleNotFoundError: there is no such module.
    """
    return hashlib.sha256(repr(sorted(reached_modules(module, root).items())).encode()).hexdigest()[:16]


def reached_modules(module: str, root: Path = ROOT) -> dict[str, str]:
    """Hashes of the syntax trees of a module and of all project modules that it reaches by import, by their names.

    Nothing is imported: files are found by their path below `root`. Imports inside functions count; imports by a
    computed name aren't seen, but a package that looks through its own `__path__` reaches all that is below it. Modules
    named *_config are left out: they hold fields, whose values are in the spec.

    Raises:
        ModuleNotFoundError: there is no such module.
    """
    if _source(module, root) is None:
        raise ModuleNotFoundError(
            f"module must be a file of {PACKAGE} below {root}, got {module!r}. "
            "Name it as an import does: headstream.tasks.training.model_training."
        )
    reached: dict[str, str] = {}
    waiting = {module}
    while waiting:
        name = waiting.pop()
        if name not in reached and not name.endswith("_config") and (source := _source(name, root)):
            reached[name] = source.tree_sha256
            waiting |= source.imports
    return reached


class _Source(NamedTuple):
    tree_sha256: str
    imports: frozenset[str]  # dotted names, of modules or of what is in them


@cache
def _source(name: str, root: Path) -> _Source | None:
    """A project module's source; None for any other name."""
    package, *inner = name.split(".")
    if package != PACKAGE or not inner:
        return None  # the package itself opens doors, and computes nothing
    stem = root.joinpath(*inner)
    path = next((path for path in (stem / "__init__.py", stem.with_suffix(".py")) if path.is_file()), None)
    if path is None:
        return None
    with _parsing:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    named = (name, *_imports(tree, package), *_found_by_looking(tree, package, path))
    # Importing a.b.c runs a, a.b and a.b.c.
    imports = {prefix for target in named for prefix in accumulate(target.split("."), "{}.{}".format)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            has_docstring = ast.get_docstring(node, clean=False) is not None
            node.body = node.body[has_docstring:]
    return _Source(hashlib.sha256(ast.dump(tree).encode()).hexdigest(), frozenset(imports))


def _imports(tree: ast.Module, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), package)
            # What is imported may be a submodule: `from headstream.models.circuits import eigenvalues`.
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def _found_by_looking(tree: ast.Module, package: str, path: Path) -> Iterator[str]:
    """The modules below a package whose `__init__.py` reads its `__path__`: it imports what it finds there."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if path.name == "__init__.py" and "__path__" in names:
        for below in path.parent.rglob("*.py"):
            inner = below.relative_to(path.parent).with_suffix("").parts
            yield ".".join((package, *inner)).removesuffix(".__init__")
