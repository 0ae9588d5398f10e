"""Figures of the explorer in a browser, and what they are saved as."""

import csv
import io
from pathlib import Path

PHONE, DESK = {"width": 390, "height": 800}, {"width": 1280, "height": 900}


def figure(page, title: str):
    return page.get_by_role("figure", name=title, exact=True)


def saved(page, title: str, kind: str) -> bytes:
    with page.expect_download() as download:
        figure(page, title).get_by_role("button", name=f"as {kind}").click()
    return Path(download.value.path()).read_bytes()


def saved_rows(page, title: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(saved(page, title, "CSV").decode())))
