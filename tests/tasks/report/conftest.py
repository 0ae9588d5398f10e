"""Reports in tests, most of which read what a report says."""

import pytest

from headstream.tasks.report import drawing
from headstream.tasks.report.figures.style import save


@pytest.fixture(autouse=True)
def unsaved_figures(monkeypatch):
    """Figures are made but not laid out and saved, which takes longest.

    Module-scoped fixtures and child processes do save them, and so do tests that use `saved_figures`.
    """
    monkeypatch.setattr(drawing, "save", lambda figure, path: path.write_text("<svg/>"))


@pytest.fixture
def saved_figures(unsaved_figures, monkeypatch):
    """Figures are laid out and saved."""
    monkeypatch.setattr(drawing, "save", save)
