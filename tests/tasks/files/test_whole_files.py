"""Files that others find whole or not at all."""

import os
import time

import pytest

from headstream.tasks.files.whole_files import ABANDONED_AFTER_SECONDS, written_whole


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_takes_its_place_once_it_is_whole(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    with written_whole(tmp_path / "a.txt") as unfinished:
        unfinished.write_text("new")
        assert (tmp_path / "a.txt").read_text() == "old"
    assert (tmp_path / "a.txt").read_text() == "new"
    assert names(tmp_path) == ["a.txt"]


def test_an_error_leaves_what_was_there(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(UnicodeEncodeError), written_whole(tmp_path / "a.txt") as unfinished:
        unfinished.write_text("half, then what can't be written: \udc00", encoding="utf-8")
    assert (tmp_path / "a.txt").read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_what_a_killed_process_left_is_removed_a_day_later(tmp_path):
    young, old, others = (tmp_path / name for name in (".a[1].txt.7", ".a[1].txt.8", ".b.txt.8"))
    for path in (young, old, others):
        path.write_text("half")
    for path in (old, others):
        os.utime(path, (0, time.time() - ABANDONED_AFTER_SECONDS - 60))
    with written_whole(tmp_path / "a[1].txt") as unfinished:
        unfinished.write_text("whole")
    assert names(tmp_path) == [".a[1].txt.7", ".b.txt.8", "a[1].txt"]


def test_what_another_process_finishes_meanwhile_is_not_missed(tmp_path):
    (tmp_path / ".a.txt.9").symlink_to("gone")  # as if it were renamed once it had been listed
    with written_whole(tmp_path / "a.txt") as unfinished:
        unfinished.write_text("whole")
    assert (tmp_path / "a.txt").read_text() == "whole"
