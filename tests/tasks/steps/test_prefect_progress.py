"""A training's progress in Prefect's pages."""

import pytest
from prefect.exceptions import PrefectException

from headstream.tasks.steps import prefect_progress


def test_a_training_goes_on_when_prefect_cant_show_its_progress(monkeypatch, caplog):
    shown = []

    def create(percent: float, **options: str) -> str:
        if not shown:
            shown.append(None)
            raise PrefectException
        shown.append(percent)
        return "artifact"

    monkeypatch.setattr(prefect_progress, "create_progress_artifact", create)
    monkeypatch.setattr(
        prefect_progress, "update_progress_artifact", lambda artifact, percent: shown.append((artifact, percent))
    )
    show = prefect_progress.shown_in_prefect("2L4H", "n_layers=2")
    for fraction in (1.0, 1.0, 1.0):
        show(fraction)
    assert shown == [None, 100.0, ("artifact", 100.0)]
    assert "the progress of n_layers=2 can't be shown: PrefectException" in caplog.text


def test_an_error_that_is_not_prefects_is_raised(monkeypatch):
    monkeypatch.setattr(prefect_progress, "create_progress_artifact", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        prefect_progress.shown_in_prefect("2L4H", "n_layers=2")(1.0)
