"""The version of a stage's code: a hash that changes with anything that can change results, not with comments."""

import ast
import hashlib
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.util import find_spec, resolve_name
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from headstream.tasks.places import ROOT
from headstream.tasks.storage.remembered_files import RememberedFiles, remembered_files

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
    """Hashes of the syntax trees of a module and of all project modules that it reaches by import, by module name.

    Nothing is imported: files are found by their path below `root`. Imports inside functions count; imports by a
    computed name aren't seen, but a package that looks through its own `__path__` reaches all that is below it. Modules
    named *_config are left out: they hold fields, whose values are in the spec. The module itself may be a user's,
    of a stage of their own.

    Raises:
        ModuleNotFoundError: there is no such module.
    """
    file = _file_of(module, root) or _file_of_other(module)
    if file is None:
        raise ModuleNotFoundError(
            f"there is no module {module!r} in {PACKAGE} below {root}, nor elsewhere. Name it as an import does:"
            " headstream.tasks.training.model_training."
        )
    first = _source(module, file, root)
    reached, waiting = {module: first.tree_sha256}, set(first.imports)
    while waiting:
        name = waiting.pop()
        file = None if name in reached or name.endswith("_config") else _file_of(name, root)
        if file:
            source = _source(name, file, root)
            reached[name] = source.tree_sha256
            waiting |= source.imports
    if root == ROOT:
        _remembered().keep()
    return reached


class _Source(NamedTuple):
    tree_sha256: str
    imports: frozenset[str]  # dotted names, of modules or of what is in them


@cache
def _file_of(name: str, root: Path) -> Path | None:
    """The file of a project module; None for any other name."""
    package, *inner = name.split(".")
    if package != PACKAGE or not inner:
        return None  # the package itself only re-exports
    stem = root.joinpath(*inner)
    return next((path for path in (stem / "__init__.py", stem.with_suffix(".py")) if path.is_file()), None)


def _file_of_other(name: str) -> Path | None:
    """The file of a module outside of the project; None if it has none."""
    if not name or name.split(".")[0] == PACKAGE:
        return None
    with suppress(ModuleNotFoundError):
        found = find_spec(name)
        return Path(found.origin) if found and found.has_location and found.origin else None
    return None


@cache
def _source(name: str, file: Path, root: Path) -> _Source:
    is_package = file.name == "__init__.py"
    if root == ROOT:
        parsed = _remembered().recall(file, lambda raw: _parsed(raw.read(), name, is_package))
    else:
        parsed = _parsed(file.read_bytes(), name, is_package)
    below = _modules_below(name, file.parent) if parsed["looks_below"] else ()
    return _Source(parsed["tree_sha256"], frozenset([*parsed["imports"], *below]))


@cache
def _remembered() -> RememberedFiles:
    """What is known of this installation's sources: by this module, and by a Python, on which syntax trees depend."""
    this_module = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    return remembered_files("sources", f"{this_module} in Python {sys.version}")


def _parsed(source: bytes, name: str, is_package: bool) -> dict[str, Any]:
    """The hash of a module's syntax tree without docstrings, what it imports, and whether it looks below itself."""
    with _parsing:
        tree = ast.parse(source, filename=name)
    named = (name, *_imports(tree, name if is_package else name.rpartition(".")[0]))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    # Importing a.b.c runs a, a.b and a.b.c.
    imports = {prefix for target in named for prefix in accumulate(target.split("."), "{}.{}".format)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            has_docstring = ast.get_docstring(node, clean=False) is not None
            node.body = node.body[has_docstring:]
    return {
        "tree_sha256": hashlib.sha256(ast.dump(tree).encode()).hexdigest(),
        "imports": sorted(imports),
        "looks_below": is_package and "__path__" in names,
    }


def _imports(tree: ast.Module, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), package)
            # What is imported may be a submodule: `from headstream.models.circuits import eigenvalues`.
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def _modules_below(package: str, folder: Path) -> Iterator[str]:
    """The modules of a package that imports what it finds below itself."""
    for below in folder.rglob("*.py"):
        inner = below.relative_to(folder).with_suffix("").parts
        yield ".".join((package, *inner)).removesuffix(".__init__")
