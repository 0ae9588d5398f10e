"""Headstream's models and tasks as `headstream.models` and `headstream.tasks`, so that those names stay free for yours.

Its sources import one another as `models...` and `tasks...`, which in a notebook may name a file beside it. Below
`headstream` the same files are imported with these names read as `headstream.models...` and `headstream.tasks...`.
"""

import ast
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

ROOT = Path(__file__).resolve().parents[1]
OWN = ("models", "tasks")


class _Finder:
    """Finds what is below `headstream`, and in the repository what is below one of OWN."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        package, _, inner = name.partition(".")
        if package != "headstream" or not inner:
            return None
        spec = PathFinder.find_spec(name, [str(ROOT)] if inner in OWN else path, target)
        if spec and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    """Reads a module's imports of OWN as imports of headstream's."""

    def get_code(self, fullname: str) -> CodeType:
        """The module's code; never what another loader kept of the file, nor kept for one."""
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path), path)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] in OWN:
                node.module = f"headstream.{node.module}"
        return compile(tree, path, "exec", dont_inherit=True)


def find_own_modules() -> None:
    """Have everything below `headstream` found so, from now on."""
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
