"""From a head's name in the report to its card in the explorer."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from headstream.models.nodes import HEAD_LABEL
from headstream.tasks.report.explorer.model_files import EXPLORER
from headstream.tasks.words.markdown import Markdown, escaped


def with_head_links(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a table, in which names of heads lead to the explorer if it says of which model they are."""
    model = row.get("model") or row.get("label")
    return {name: _link(model, value) if model and _is_head(value) else value for name, value in row.items()}


def prose_with_head_links(text: str, model: str | None) -> Markdown:
    """Text in which the names of a model's heads lead to the explorer."""
    prose = escaped(text)
    return Markdown(HEAD_LABEL.sub(lambda head: _link(model, head[0]), prose)) if model else prose


def _is_head(value: Any) -> bool:
    return isinstance(value, str) and bool(HEAD_LABEL.fullmatch(value))


def _link(model: str, head: str) -> Markdown:
    return Markdown(f"[{head}]({EXPLORER}#{quote(model, safe='')}/{head})")
