"""Reports in tests, most of which read what a report says."""

import pytest

from tasks.report import drawing


@pytest.fixture(autouse=True)
def unsaved_figures(monkeypatch):
    """Figures are made but not laid out and saved, which takes longest; in fixtures of a module they are."""
    monkeypatch.setattr(drawing, "save", lambda figure, path: path.write_text("<svg/>"))
