"""The layout: flows and headstream -> tasks -> models, what folders must not touch, names, where tests lie."""

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from headstream.tasks.words.code_tree import CONTRIBUTING, PAGE_MARK, code_tree
from headstream.tasks.words.code_tree import FOLDERS as CODE_FOLDERS

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("headstream", "flows", "tasks", "models")
MAY_IMPORT = {
    "headstream": {"headstream", "tasks", "models"},
    "flows": {"flows", "tasks", "models"},
    "tasks": {"tasks", "models"},
    "models": {"models"},
}
FORBIDDEN_LIBRARIES = {
    "headstream": {"prefect"},
    "flows": {"torch", "duckdb", "pyarrow", "pandas", "safetensors"},
    "tasks": set(),
    "models": {"prefect", "duckdb", "pandas", "pyarrow", "pathlib", "os", "io", "safetensors"},
}
VAGUE = {"utils", "common", "helpers", "base", "manager", "registry"}
SOURCES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
TESTS = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if path.parent.name != "tests"]


def imported(path: Path, at_once: bool = False, for_types: bool = True) -> set[str]:
    """Dotted names of the modules that a file imports, and of what it imports from them; ours as in the repository.

    `at_once`: without what it imports when a function needs it. Not `for_types`: without what only annotations need.
    """
    names, tree = set(), ast.parse(path.read_text())
    if not for_types:
        tree.body = [node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node))]
    for node in tree.body if at_once else ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.removeprefix("headstream.") for name in names}


def offenders(paths: Iterable[Path], wrong: Callable[[Path], object]) -> dict[str, object]:
    """The files with which anything is wrong, and what it is."""
    found = {str(path.relative_to(ROOT)): wrong(path) for path in paths}
    return {name: what for name, what in found.items() if what}


def wrong_imports(path: Path) -> list[str]:
    """Folders and libraries that a module imports though its folder may not."""
    folder = path.relative_to(ROOT).parts[0]
    if path.name == "__main__.py":
        folder = "flows"  # it is the command line
    forbidden = set(FOLDERS) - MAY_IMPORT[folder] | FORBIDDEN_LIBRARIES[folder] | {"tests", "data", "reports"}
    return sorted({name.split(".")[0] for name in imported(path)} & forbidden)


def test_imports_follow_the_dependency_rule():
    assert offenders(SOURCES, wrong_imports) == {}


@pytest.mark.parametrize("module", ["flows.run_command", "flows.watch_command"])
def test_commands_begin_before_what_takes_seconds_is_loaded(module):
    """A run while its server and its children start, `watch` while there is nothing to measure."""
    loaded, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        loaded.add(name)
        file = (ROOT / name.replace(".", "/")).with_suffix(".py")
        names = imported(file, at_once=True) if file.exists() else set()
        waiting += names.union(name.rpartition(".")[0] for name in names) - loaded
    assert "tasks.study.schema" in loaded
    assert not {"torch", "pandas", "matplotlib", "scipy.stats", "scipy.optimize"} & loaded


def file_accesses(path: Path) -> list[str]:
    """Functions called that open files."""
    calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    names = {call.id if isinstance(call, ast.Name) else getattr(call, "attr", "") for call in calls}
    return sorted(names & {"open", "read_text", "write_text", "read_bytes", "write_bytes"})


def test_flows_open_no_files():
    assert offenders((ROOT / "flows").rglob("*.py"), file_accesses) == {}


def is_elsewhere(path: Path) -> bool:
    """Whether a test imports nothing from the folder that its own is named after, nor goes by another test's ways."""
    folder = path.parent.relative_to(ROOT / "tests")
    beside = {other.stem for other in path.parent.glob("*.py")}
    package = ".".join((*folder.parts, ""))
    if (
        package == "headstream."
    ):  # whose modules are imported by their names alone, as those of the repository's folders
        beside |= {own.stem for own in (ROOT / folder).glob("*.py")}
    tested = any(f"{name}.".startswith(package) or name.split(".")[0] in beside for name in imported(path))
    return not tested or not (ROOT / folder).is_dir()


def test_tests_lie_where_the_code_that_they_test_does():
    assert offenders(TESTS, is_elsewhere) == {}


@pytest.mark.parametrize(
    ("file", "code", "wrong", "found"),
    [
        ("models/a.py", "from headstream.tasks.study.schema import Study", wrong_imports, ["tasks"]),
        ("flows/a.py", "import torch", wrong_imports, ["torch"]),
        ("tasks/a.py", "import tests.tiny", wrong_imports, ["tests"]),
        ("tasks/a.py", "import torch", wrong_imports, None),
        ("flows/a.py", "path.read_text()", file_accesses, ["read_text"]),
        ("tests/tasks/test_a.py", "from headstream.models.bos import NO_BOS", is_elsewhere, True),
    ],
)
def test_offenders_would_be_found(tmp_path, monkeypatch, file, code, wrong, found):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    path = tmp_path / file
    (tmp_path / "tasks").mkdir()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)
    assert offenders([path], wrong) == ({file: found} if found else {})


def test_no_two_modules_have_the_same_name():
    names = Counter(path.name for path in SOURCES if path.name != "__init__.py")
    assert [name for name, n in names.items() if n > 1] == []


def test_the_tree_in_contributing_is_up_to_date():
    tree = CONTRIBUTING.read_text().partition(PAGE_MARK)[2]
    assert tree.strip() == code_tree().strip(), "run python -m headstream.tasks.words.code_tree"


def test_the_tree_says_something_of_everything_in_it():
    entries = [line for line in code_tree().splitlines() if line != "```"]
    assert [entry for entry in entries if not re.fullmatch(r" *[\w/.]+  +\S.*(\.|https://\S+)", entry)] == []
    listed = Counter(entry.split()[0] for entry in entries if ".py" in entry.split()[0])
    there = [path for folder in CODE_FOLDERS for path in (ROOT / folder).rglob("*.py") if path.name != "__init__.py"]
    assert listed == Counter(path.name for path in there)


# The rooms of tasks/, each above those that it may import; report says what results holds, without measuring, and
# its explorer shows models and texts as they are stored.
TASK_ROOMS = ("files", "words", "study", "storage", "results", "text", "training", "prompts", "measuring")
BESIDE = {
    "machines": {"files", "study", "storage"},
    "studies": {"files", "words", "study", "storage", "results", "training"},
    "importing": {"files", "study", "storage", "results", "text", "training"},
    "report": {"files", "words", "storage", "prompts", "results", "text", "training"},
    "watching": {"files", "study", "storage", "results", "text", "training", "measuring", "report"},
}
MODEL_ROOMS = ("", "heads", "prompts", "circuits")  # what models are, what their heads do, how they do it


@pytest.mark.parametrize("room", [*TASK_ROOMS, *BESIDE])
def test_rooms_import_in_one_direction(room):
    below = BESIDE[room] if room in BESIDE else set(TASK_ROOMS[: TASK_ROOMS.index(room)])
    for path in sorted((ROOT / "tasks" / room).rglob("*.py")):
        found = re.findall(r"^\s*from headstream\.tasks\.(\w+)\.", path.read_text(), re.MULTILINE)
        assert {*found} - {room} <= below, path


@pytest.mark.parametrize("room", MODEL_ROOMS)
def test_rooms_of_models_import_in_one_direction(room):
    above = MODEL_ROOMS[MODEL_ROOMS.index(room) + 1 :]
    for path in sorted((ROOT / "models" / room).glob("*.py")):
        found = re.findall(r"^\s*from headstream\.models\.(\w+)", path.read_text(), re.MULTILINE)
        assert not {*found} & {*above}, path


def test_module_names_say_what_they_hold():
    assert not {path.stem for path in SOURCES} & VAGUE
    assert not {path.stem for path in (ROOT / "flows").glob("*.py")} & {
        path.name for path in ROOT.iterdir() if path.is_dir()
    }


CONVENTIONAL = {"log", "STAGE", "ORDER"}  # a module's logger, an analysis' stage, a section's place in the report


def public_names(path: Path) -> list[str]:
    """Names that a module defines for others: functions, classes, constants and aliases."""
    names = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names += [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
    return [name for name in names if not name.startswith("_")]


def test_one_name_for_one_thing():
    """No public name is defined by two modules, except functions in headstream/ that do what a command does."""
    places: dict[str, list[str]] = defaultdict(list)
    for path in (path for path in SOURCES if path.parent.name != "headstream"):
        for name in {*public_names(path)} - CONVENTIONAL:
            places[name].append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def module_of(path: Path) -> str:
    """The name of a module as it is imported, without `headstream.`."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__").removeprefix("headstream.")


def test_no_modules_import_each_other_in_a_circle():
    """Not even within functions: who reads one of a circle has to read them all. Types may name each other."""
    modules = {module_of(path): path for path in SOURCES if path.name != "__init__.py"}
    needed = {
        name: {
            known
            for found in imported(path, for_types=False)
            for known in (found, found.rpartition(".")[0])
            if known in modules
        }
        for name, path in modules.items()
    }
    tuple(TopologicalSorter(needed).static_order())  # CycleError names them
