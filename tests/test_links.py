"""Every link between the pages of the repository leads somewhere."""

import re

import pytest

from headstream.tasks.places import ROOT

WRITTEN = ("reports/generated", "data/store")  # by studies
PAGES = sorted(
    name
    for name in (str(path.relative_to(ROOT)) for path in ROOT.rglob("*.md"))
    if not name.startswith((".", *WRITTEN)) and "node_modules" not in name
)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(page: str) -> set[str]:
    """What GitHub calls the headings of a page, and the anchors that it names itself."""
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    named = set(re.findall(r'<a (?:id|name)="([^"]+)"', page))
    return named | {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    folder = (ROOT / page).parent
    for target in LINK.findall((ROOT / page).read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        found = folder / path if path else ROOT / page
        assert found.exists(), target
        if anchor and found.suffix == ".md":
            assert anchor in anchors(found.read_text()), target
