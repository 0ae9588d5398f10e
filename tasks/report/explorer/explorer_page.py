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
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


def write_page_file(path: Path, study: str, contents: Mapping[str, Any], blocks: Mapping[str, bytes]) -> None:
    """Write the page. Blocks are what the contents refer to by name."""
    packed = {"contents": gzip.compress(json.dumps(contents, separators=(",", ":")).encode(), mtime=0), **blocks}
    script, style = joined_script(), (PAGE / "style.css").read_text(encoding="utf-8")
    environment = Environment(
        loader=FileSystemLoader(PAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    text = environment.get_template("page.html.jinja").render(
        study=study,
        asks_its_server=bool(contents["version"]),
        script=Markup(script),
        style=Markup(style),
        script_hash=_source_hash(script),
        style_hash=_source_hash(style),
        blocks={name: Markup(base64.b64encode(block).decode()) for name, block in packed.items()},
    )
    path.write_text(text, encoding="utf-8")


def joined_script() -> str:
    """The modules of page/ as one script, each after those that it imports from; names are one's own in all of them."""
    modules = (_EXPORT.sub("", _IMPORT.sub("", _source(name))) for name in _in_order("main", set()))
    return '"use strict";\n(() => {\n' + "\n".join(modules) + "\n})();\n"


def _in_order(name: str, seen: set[str]) -> Iterator[str]:
    if name not in seen:
        seen.add(name)
        for imported in _IMPORT.findall(_source(name)):
            yield from _in_order(imported, seen)
        yield name


def _source(name: str) -> str:
    return (PAGE / f"{name}.js").read_text(encoding="utf-8")


def _source_hash(text: str) -> str:
    """What a content security policy calls an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
