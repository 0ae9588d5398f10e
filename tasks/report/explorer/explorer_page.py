"""The explorer's page: one file that holds a study's results, some of its models, and what shows them."""

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

PAGE = Path(__file__).parent / "page"
_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


def write_page_file(path: Path, study: str, contents: Mapping[str, Any], blocks: Mapping[str, bytes]) -> None:
    """Write the page. Blocks are what the contents refer to by name."""
    packed = {"contents": gzip.compress(json.dumps(contents, separators=(",", ":")).encode(), mtime=0), **blocks}
    script, style = joined_script(), (PAGE / "style.css").read_text(encoding="utf-8")
    environment = Environment(
        loader=FileSystemLoader(PAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    text = environment.get_template("page.html.jinja").render(
        study=study,
        asks_its_server=bool(contents["version"] or contents["served"]),
        script=Markup(script),
        style=Markup(style),
        script_hash=_source_hash(script),
        style_hash=_source_hash(style),
        blocks={name: Markup(base64.b64encode(block).decode()) for name, block in packed.items()},
    )
    path.write_text(text, encoding="utf-8")


def joined_script() -> str:
    """The modules of page/ as one script, which opens the page with every view: what each NAME_view.js exports."""
    views = sorted(path.stem for path in PAGE.glob("*_view.js"))
    seen: set[str] = set()
    ordered = [module for start in [*views, "main"] for module in _in_order(start, seen)]
    opened = ", ".join(f"modules.{name}.view" for name in views)
    lines = ["const modules = {};", *map(_module, ordered), f"modules.main.openPage([{opened}]);"]
    return "\n".join(['"use strict";', "(() => {", *lines, "})();", ""])


def _in_order(name: str, seen: set[str]) -> Iterator[str]:
    """A module that wasn't seen yet, after those that it imports from."""
    if name not in seen:
        seen.add(name)
        for _, imported in _IMPORT.findall(_source(name)):
            yield from _in_order(imported, seen)
        yield name


def _module(name: str) -> str:
    """A module as a function that is called at once: its names are its own, and it returns what it exports."""
    source = _source(name)
    exported = ", ".join(exported for _, exported in _EXPORT.findall(source))
    body = _EXPORT.sub(r"\1", _IMPORT.sub(r"const \1 = modules.\2;", source))
    return f"modules.{name} = (() => {{\n{body}return {{ {exported} }};\n}})();"


def _source(name: str) -> str:
    return (PAGE / f"{name}.js").read_text(encoding="utf-8")


def _source_hash(text: str) -> str:
    """What a content security policy calls an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
