"""A wheel holds all packages, and every file that a run reads."""

import tomllib

from headstream.tasks.graph.artifact_specs import RESOURCES
from headstream.tasks.places import ROOT

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
LINKED = ("models", "tasks", "flows", "data", "reports")


def test_everything_of_ours_is_below_one_package():
    for name in LINKED:
        link = ROOT / "headstream" / name
        assert link.is_symlink()
        assert link.resolve() == ROOT / name


def test_every_folder_with_modules_is_a_package():
    folders = {path.parent for name in LINKED for path in (ROOT / name).rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_every_file_that_runs_read_is_in_the_wheel():
    held = {path.resolve() for pattern in SETTINGS["package-data"]["headstream"] for path in _found(pattern)}
    read = {path for pattern in RESOURCES for path in ROOT.glob(pattern) if path.is_file() and path.suffix != ".py"}
    read |= {*ROOT.glob("flows/studies/*.toml"), ROOT / "reports" / "glossary.toml", ROOT / "prefect.yaml"}
    assert sorted(read - held) == []


def _found(pattern: str):
    folder, _, inner = pattern.partition("/")
    return (ROOT / folder).glob(inner) if inner else []
