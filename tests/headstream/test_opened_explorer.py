"""The explorer, opened from Python at a model."""

import pytest

import headstream as hs
from headstream import opened_explorer
from headstream.tasks import places


@pytest.mark.parametrize("there", [True, False])
def test_it_is_opened_at_the_model_and_written_where_it_is_missing(home, monkeypatch, there):
    ran, opened = [], []
    monkeypatch.setattr(places, "report_folder", lambda study: home / f"{study}-{there}")
    monkeypatch.setattr(opened_explorer, "run_command", ran.append)
    monkeypatch.setattr("webbrowser.open_new_tab", opened.append)
    monkeypatch.setenv("DISPLAY", ":0")
    if there:
        (home / "ours-True").mkdir()
        (home / "ours-True" / "explorer.html").touch()
    model = hs.open("ours").model(seed=0)
    page = model.explore()
    assert ran == ([] if there else [["explore", "ours", "--no-open"]])
    assert opened == [page.address] == [f"{(home / f'ours-{there}' / 'explorer.html').as_uri()}#{model.model_id}/"]
    assert f'<a href="{page.address}">' in page._repr_html_()
    assert model.explore(show=False).address == repr(page)
    assert len(opened) == 1
