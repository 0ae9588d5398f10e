"""Files of the explorer, taken apart as a browser does."""

import base64
import gzip
import json
from html.parser import HTMLParser
from pathlib import Path


class _Parts(HTMLParser):
    """Scripts, styles and the policy of a page, as a browser takes them apart."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: dict[str, str] = {}
        self.tags: list[str] = []
        self.policy = ""
        self._within = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        fields = dict(attributes)
        self.tags.append(tag)
        if tag in ("script", "style"):
            self._within = fields.get("id") or tag
        if fields.get("http-equiv") == "Content-Security-Policy":
            self.policy = fields["content"] or ""

    def handle_endtag(self, tag: str) -> None:
        self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within:
            self.scripts[self._within] = data


def parts_of(page: Path) -> _Parts:
    return _Parts(page.read_text(encoding="utf-8"))


def contents_of(page: Path) -> dict:
    return json.loads(gzip.decompress(base64.b64decode(parts_of(page).scripts["contents"])))
