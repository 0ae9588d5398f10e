"""Modules named *_config.py say what a study may hold and compute nothing, so they are left out of code versions."""

import ast
from pathlib import Path

import pytest
from pydantic import BaseModel

from headstream.tasks.study.schema import ModelSection, Study

ROOT = Path(__file__).resolve().parents[3]
CONFIGS = [path for folder in ("models", "tasks") for path in sorted((ROOT / folder).rglob("*_config.py"))]
VALIDATORS = {"field_validator", "model_validator"}


def is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def is_validator(node: ast.stmt) -> bool:
    calls = [d for d in getattr(node, "decorator_list", []) if isinstance(d, ast.Call) and isinstance(d.func, ast.Name)]
    return isinstance(node, ast.FunctionDef) and any(call.func.id in VALIDATORS for call in calls)


def is_config(node: ast.stmt) -> bool:
    """A pydantic class of fields and validators, without properties or methods for others to call."""
    return (
        isinstance(node, ast.ClassDef)
        and [ast.unparse(base) for base in node.bases] == ["BaseModel"]
        and all(is_docstring(n) or isinstance(n, ast.Assign | ast.AnnAssign) or is_validator(n) for n in node.body)
    )


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_config_module_holds_imports_constants_types_and_configs(path):
    allowed = ast.Import | ast.ImportFrom | ast.Assign | ast.AnnAssign
    nodes = ast.parse(path.read_text()).body
    assert not [ast.unparse(n) for n in nodes if not (isinstance(n, allowed) or is_docstring(n) or is_config(n))]


def sections(config: type[BaseModel]) -> set[type[BaseModel]]:
    """A config and all that it holds."""
    inner = [f.annotation for f in config.model_fields.values() if isinstance(f.annotation, type)]
    return {config}.union(*(sections(section) for section in inner if issubclass(section, BaseModel)))


@pytest.mark.parametrize("config", sorted(sections(Study) - {ModelSection}, key=lambda config: config.__name__))
def test_the_description_of_every_field_stands_alone(config):
    for name, field in config.model_fields.items():
        text = field.description or ""
        assert text[:1].isupper(), f"{name}: {text}"
        assert text.endswith("."), f"{name}: {text}"
        assert text.split()[0] not in ("Of", "On", "Their"), f"{name}: {text}"
