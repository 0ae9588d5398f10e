import errno
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

from headstream.tasks.results import tables, views, warehouse_template
from headstream.tasks.results.warehouse_template import MOST_KEPT, template_file, write_empty_warehouse


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    """A user's cache without a template."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> bytes:
    """An empty warehouse that was created, which takes a while."""
    path = tmp_path_factory.mktemp("made") / "made.duckdb"
    warehouse_template._create(path)
    return path.read_bytes()


@pytest.fixture(autouse=True)
def created(monkeypatch, made) -> list[Path]:
    """The databases that were created, not copied."""
    paths = []

    def create(path: Path) -> None:
        paths.append(path)
        path.write_bytes(made)

    monkeypatch.setattr(warehouse_template, "_create", create)
    return paths


def test_a_warehouse_without_rows_has_all_else(tmp_path, made):
    write_empty_warehouse(tmp_path / "written")
    with duckdb.connect(tmp_path / "written", read_only=True) as connection:
        for name in (*tables.tables(), *(view.name for view in views.views())):
            assert connection.execute(f"FROM {name}").fetchall() == []
        count = "SELECT count(*), count(comment) FROM duckdb_columns() WHERE NOT internal"
        n_columns, n_comments = connection.execute(count).fetchone()
    assert n_columns == n_comments > 700


def test_it_is_created_once_and_then_copied(tmp_path, created, made):
    first, second = tmp_path / "first", tmp_path / "second"
    write_empty_warehouse(first)
    write_empty_warehouse(second)
    assert created == [first]
    assert first.read_bytes() == second.read_bytes() == made


@pytest.mark.parametrize(
    "broken",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content[:5000] + bytes([content[5000] ^ 1]) + content[5001:],
    ],
    ids=["empty", "half", "one bit"],
)
def test_a_broken_template_is_made_again(tmp_path, created, made, broken):
    paths = [tmp_path / name for name in ("first", "second", "third")]
    write_empty_warehouse(paths[0])
    template_file().write_bytes(broken(template_file().read_bytes()))
    write_empty_warehouse(paths[1])
    write_empty_warehouse(paths[2])
    assert created == paths[:2]
    assert [path.read_bytes() for path in paths] == [made] * 3


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


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, cache, created, made):
    cache.write_text("a file, not a folder")
    paths = [tmp_path / "first", tmp_path / "second"]
    for path in paths:
        write_empty_warehouse(path)
    assert created == paths
    assert [path.read_bytes() for path in paths] == [made] * 2


def test_a_full_disk_leaves_no_template(tmp_path, monkeypatch, made):
    def fail(*paths: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.replace", fail)
    write_empty_warehouse(tmp_path / "written")
    assert (tmp_path / "written").read_bytes() == made
    assert [*template_file().parent.iterdir()] == []


def test_what_a_killed_process_was_writing_is_no_template(tmp_path, created, made):
    template_file().parent.mkdir(parents=True)
    template_file().with_name(f".{template_file().name}.1").write_bytes(b"half of it")
    write_empty_warehouse(tmp_path / "written")
    assert created == [tmp_path / "written"]
    assert (tmp_path / "written").read_bytes() == made


def test_many_may_write_at_once(tmp_path, made):
    paths = [tmp_path / str(i) for i in range(8)]
    with ThreadPoolExecutor(len(paths)) as pool:
        list(pool.map(write_empty_warehouse, paths))
    write_empty_warehouse(tmp_path / "last")
    assert {path.read_bytes() for path in (*paths, tmp_path / "last")} == {made}


def test_only_the_latest_templates_are_kept(tmp_path):
    folder = template_file().parent
    folder.mkdir(parents=True)
    for age in range(1, MOST_KEPT + 3):
        (folder / f"{age}").write_bytes(b"")
        os.utime(folder / f"{age}", (1e9 - age, 1e9 - age))
    write_empty_warehouse(tmp_path / "written")
    assert {path.name for path in folder.iterdir()} == {template_file().name, *map(str, range(1, MOST_KEPT))}
