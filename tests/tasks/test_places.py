"""Where files are."""

import pytest

from headstream.tasks import places


@pytest.mark.parametrize("variable", [None, ""])
def test_an_empty_home_is_none_that_is_set(variable, monkeypatch):
    monkeypatch.delenv("HEADSTREAM_HOME", raising=False)
    if variable is not None:
        monkeypatch.setenv("HEADSTREAM_HOME", variable)
    assert places.home() == places.ROOT


def test_a_home_may_begin_with_the_users(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HEADSTREAM_HOME", "~/studies")
    assert places.store_folder() == tmp_path / "studies" / "data" / "store"
