import errno
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

from headstream.tasks.results import tables, views, warehouse_template
from headstream.tasks.results.tables import quoted
from headstream.tasks.results.warehouse_template import MOST_KEPT, template_file, write_empty_warehouse


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    """A user's cache without a template."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def created(monkeypatch) -> list[Path]:
    """The databases that were created, not copied."""
    create, paths = warehouse_template._create, []
    monkeypatch.setattr(warehouse_template, "_create", lambda path: (paths.append(path), create(path)))
    return paths


def is_empty_warehouse(path: Path) -> bool:
    """Whether a file has all tables, views and comments, and no rows."""
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH {quoted(str(path))} AS written (READ_ONLY)")
        connection.execute("USE written")
        names = [*tables.tables(), *(view.name for view in views.views())]
        rows = [row for name in names for row in connection.execute(f"FROM {name}").fetchall()]
        (n_columns, n_comments) = connection.execute(
            "SELECT count(*), count(comment) FROM duckdb_columns() WHERE database_name = 'written'"
        ).fetchone()
    return rows == [] and n_comments == n_columns > 700


def test_it_is_created_once_and_then_copied(tmp_path, created):
    first, second = tmp_path / "first", tmp_path / "second"
    write_empty_warehouse(first)
    write_empty_warehouse(second)
    assert created == [first]
    assert is_empty_warehouse(first)
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    "broken",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content[:5000] + bytes([content[5000] ^ 1]) + content[5001:],
    ],
)
def test_a_broken_template_is_made_again(tmp_path, created, broken):
    write_empty_warehouse(tmp_path / "first")
    template_file().write_bytes(broken(template_file().read_bytes()))
    write_empty_warehouse(tmp_path / "second")
    write_empty_warehouse(tmp_path / "third")
    assert created == [tmp_path / "first", tmp_path / "second"]
    assert is_empty_warehouse(tmp_path / "second")
    assert is_empty_warehouse(tmp_path / "third")


def test_what_its_content_depends_on_is_in_its_name(tmp_path, monkeypatch):
    schema = tmp_path / "schema.sql"
    schema.write_text(tables.SCHEMA.read_text() + "\nCREATE TABLE answers (answer INTEGER PRIMARY KEY);\n")
    folder = Path(shutil.copytree(views.VIEWS, tmp_path / "views"))
    (folder / "questions.sql").write_text("-- One row.\n--\n-- question: the ultimate one\nSELECT '?' AS question\n")
    files = {template_file()}
    for of, name, changed in (
        (tables, "SCHEMA", schema),
        (views, "VIEWS", folder),
        (duckdb, "__version__", "2.0.0"),
        (warehouse_template, "code_version", lambda module: "another"),
    ):
        monkeypatch.setattr(of, name, changed)
        files.add(template_file())
    assert len(files) == 5


def test_a_changed_view_is_in_the_next_warehouse(tmp_path, created, monkeypatch):
    write_empty_warehouse(tmp_path / "first")
    folder = Path(shutil.copytree(views.VIEWS, tmp_path / "views"))
    (folder / "answers.sql").write_text("-- One row.\n--\n-- answer: to everything\nSELECT 42 AS answer\n")
    monkeypatch.setattr(views, "VIEWS", folder)
    write_empty_warehouse(tmp_path / "second")
    assert created == [tmp_path / "first", tmp_path / "second"]
    with duckdb.connect(tmp_path / "second", read_only=True) as connection:
        assert connection.execute("FROM answers").fetchall() == [(42,)]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, cache, created):
    cache.write_text("a file, not a folder")
    for name in ("first", "second"):
        write_empty_warehouse(tmp_path / name)
        assert is_empty_warehouse(tmp_path / name)
    assert len(created) == 2


def test_a_full_disk_leaves_no_template(tmp_path, monkeypatch):
    def fail(*paths: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.replace", fail)
    write_empty_warehouse(tmp_path / "written")
    assert is_empty_warehouse(tmp_path / "written")
    assert [*template_file().parent.iterdir()] == []


def test_what_a_killed_process_was_writing_is_no_template(tmp_path, created):
    template_file().parent.mkdir(parents=True)
    template_file().with_name(f".{template_file().name}.1").write_bytes(b"half of it")
    write_empty_warehouse(tmp_path / "written")
    assert created == [tmp_path / "written"]
    assert is_empty_warehouse(tmp_path / "written")


def test_many_may_write_at_once(tmp_path, created):
    paths = [tmp_path / str(i) for i in range(4)]
    with ThreadPoolExecutor(len(paths)) as pool:
        list(pool.map(write_empty_warehouse, paths))
    write_empty_warehouse(tmp_path / "last")
    assert all(is_empty_warehouse(path) for path in (*paths, tmp_path / "last"))


def test_only_the_latest_templates_are_kept(tmp_path):
    folder = template_file().parent
    folder.mkdir(parents=True)
    for age in range(1, MOST_KEPT + 3):
        (folder / f"{age}").write_bytes(b"")
        os.utime(folder / f"{age}", (1e9 - age, 1e9 - age))
    write_empty_warehouse(tmp_path / "written")
    assert {path.name for path in folder.iterdir()} == {template_file().name, *map(str, range(1, MOST_KEPT))}
