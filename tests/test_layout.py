"""The dependency rule of the layout: flows -> tasks -> models, and what each folder must not touch."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("flows", "tasks", "models")
MAY_IMPORT = {"flows": {"flows", "tasks", "models"}, "tasks": {"tasks", "models"}, "models": {"models"}}
FORBIDDEN_LIBRARIES = {
    "flows": {"torch", "duckdb", "pyarrow", "pandas", "safetensors"},
    "tasks": set(),
    "models": {"prefect", "duckdb", "pandas", "pyarrow", "pathlib", "os", "io", "safetensors"},
}
VAGUE = {"utils", "common", "helpers", "base", "manager", "registry"}
SOURCES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def imported(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add((node.module or "").split(".")[0])
    return names


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_follow_the_dependency_rule(path: Path):
    folder = path.relative_to(ROOT).parts[0]
    names = imported(ast.parse(path.read_text()))
    assert names & set(FOLDERS) <= MAY_IMPORT[folder]
    assert not names & FORBIDDEN_LIBRARIES[folder]
    assert not {"tests", "data", "reports"} & names


@pytest.mark.parametrize("path", sorted((ROOT / "flows").rglob("*.py")), ids=lambda path: path.name)
def test_flows_open_no_files(path: Path):
    calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    names = {call.id if isinstance(call, ast.Name) else getattr(call, "attr", "") for call in calls}
    assert not names & {"open", "read_text", "write_text", "read_bytes", "write_bytes"}


def test_module_names_say_what_they_hold():
    assert not {path.stem for path in SOURCES} & VAGUE
    assert not {path.stem for path in (ROOT / "flows").glob("*.py")} & {
        path.name for path in ROOT.iterdir() if path.is_dir()
    }
