"""Reports in tests, most of which read what a report says."""

import matplotlib as mpl
import pytest

from headstream.tasks.report import drawing
from headstream.tasks.report.figures.style import save


@pytest.fixture(autouse=True)
def unsaved_figures(monkeypatch):
    """Figures are made but not laid out and saved, which takes longest.

    Module-scoped fixtures and child processes do save them, and so do tests that use `saved_figures` or
    `figures_as_they_fall`.
    """
    monkeypatch.setattr(drawing, "save", lambda figure, path: path.write_text("<svg/>"))


@pytest.fixture
def saved_figures(unsaved_figures, monkeypatch):
    """Figures are laid out and saved."""
    monkeypatch.setattr(drawing, "save", save)


@pytest.fixture
def figures_as_they_fall(unsaved_figures, monkeypatch):
    """Figures are saved but not laid out, which takes half of the time: all is there, if on top of itself."""

    def save_without_layout(figure, path):
        with mpl.rc_context({"figure.constrained_layout.use": False}):
            figure.set_layout_engine(None)
        save(figure, path)

    monkeypatch.setattr(drawing, "save", save_without_layout)
