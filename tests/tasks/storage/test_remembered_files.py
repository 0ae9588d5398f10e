"""What is remembered of files, between processes too, and what isn't."""

import os
from pathlib import Path

import pytest

from headstream.tasks.storage import remembered_files as module
from headstream.tasks.storage.remembered_files import RememberedFiles, sha256_of


@pytest.fixture
def asked():
    return []


@pytest.fixture
def file(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(module, "JUST_NOW_SECONDS", -1.0)
    path = tmp_path / "a.txt"
    path.write_text("one")
    return path


def recall(kept_in: Path, file: Path, asked: list[str], computed_by: str = "sha256") -> str:
    """The file's hash, as another process finds it."""

    def compute(raw) -> str:
        asked.append(file.name)
        return sha256_of(raw)

    remembered = RememberedFiles(kept_in, computed_by)
    value = remembered.recall(file, compute)
    remembered.keep()
    return value


def test_a_file_is_read_once_by_all_processes(tmp_path, file, asked):
    kept_in = tmp_path / "kept" / "hashes.json"
    assert len({recall(kept_in, file, asked) for _ in range(3)}) == 1
    assert asked == ["a.txt"]


def test_one_that_changed_is_read_again(tmp_path, file, asked):
    kept_in = tmp_path / "hashes.json"
    first, times = recall(kept_in, file, asked), (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    file.write_text("two")
    os.utime(file, ns=times)  # of the same size and time
    assert recall(kept_in, file, asked) != first
    assert asked == ["a.txt"] * 2


def test_one_that_changed_just_now_could_change_again_unseen(tmp_path, file, asked, monkeypatch):
    monkeypatch.setattr(module, "JUST_NOW_SECONDS", 2.0)
    for _ in range(2):
        recall(tmp_path / "hashes.json", file, asked)
    assert asked == ["a.txt"] * 2
    assert not (tmp_path / "hashes.json").exists()


@pytest.mark.parametrize(
    "kept", [b"", b"[1]", b"{", b"\xff", b'{"a": 1', b'{"computed_by": "an earlier release", "files": 1}']
)
def test_what_can_not_be_read_is_as_good_as_nothing(tmp_path, file, asked, kept):
    (tmp_path / "hashes.json").write_bytes(kept)
    recall(tmp_path / "hashes.json", file, asked)
    recall(tmp_path / "hashes.json", file, asked)
    assert asked == ["a.txt"]


def test_a_folder_that_can_not_be_written_costs_only_time(tmp_path, file, asked):
    (tmp_path / "blocked").touch()
    for _ in range(2):
        recall(tmp_path / "blocked" / "hashes.json", file, asked)
    assert asked == ["a.txt"] * 2


def test_files_that_are_gone_are_forgotten(tmp_path, file, asked):
    kept_in, other = tmp_path / "hashes.json", tmp_path / "b.txt"
    other.write_text("other")
    recall(kept_in, file, asked)
    file.unlink()
    recall(kept_in, other, asked)
    assert "a.txt" not in kept_in.read_text()


def test_values_of_another_computation_are_not_taken(tmp_path, file, asked):
    recall(tmp_path / "hashes.json", file, asked, "one")
    recall(tmp_path / "hashes.json", file, asked, "other")
    assert asked == ["a.txt"] * 2
