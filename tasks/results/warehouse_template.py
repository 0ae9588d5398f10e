"""Warehouses without rows: their hundreds of comments take half a second, so one is kept in the user's cache to copy.

The cache decides nothing but time. A template's name holds all that its content depends on, and its first bytes are the
hash of the others: one that is broken, or can't be written or read, is as good as none.
"""

import hashlib
import json
from contextlib import suppress
from pathlib import Path

import duckdb

from headstream.tasks import places
from headstream.tasks.files.whole_files import written_whole
from headstream.tasks.results import tables, views
from headstream.tasks.results.tables import quoted
from headstream.tasks.storage.code_version import code_version

STORAGE_VERSION = "v1.5.0"  # DuckDB 1.5 can't open files in the format of DuckDB 2
DIGEST_BYTES = hashlib.sha256().digest_size
MOST_KEPT = 8  # templates, of half a megabyte each


def write_empty_warehouse(path: Path) -> None:
    """Write a database with every macro, table and view and all their comments, and no rows."""
    template = template_file()
    content = _content_of(template)
    if content is None:
        _create(path)
        with suppress(OSError):  # the cache may be read-only, or its disk full
            _keep(path.read_bytes(), template)
    else:
        path.write_bytes(content)


def template_file() -> Path:
    """The template, if there is one, that this code, this DuckDB, and the tables and views of data/ give."""
    sources = [tables.SCHEMA, *sorted(views.VIEWS.glob("*.sql"))]
    texts = [(source.name, source.read_text(encoding="utf-8")) for source in sources]
    decides = json.dumps([texts, code_version(__name__), duckdb.__version__])
    return places.template_cache() / hashlib.sha256(decides.encode()).hexdigest()


def _content_of(template: Path) -> bytes | None:
    """The database that a template holds; None if it is missing or broken."""
    try:
        kept = template.read_bytes()
    except OSError:
        return None
    digest, content = kept[:DIGEST_BYTES], kept[DIGEST_BYTES:]
    return content if digest == hashlib.sha256(content).digest() else None


def _create(path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH {quoted(str(path))} AS empty (STORAGE_VERSION {quoted(STORAGE_VERSION)})")
        connection.execute("USE empty")
        connection.begin()  # one write to the disk instead of one for every comment
        views.create_tables_and_views(connection)
        views.comment_on_tables_and_views(connection)
        connection.commit()
        connection.execute("USE memory")
        connection.execute("DETACH empty")


def _keep(content: bytes, template: Path) -> None:
    """Put a template into the cache, in which only the latest few stay."""
    template.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(template) as unfinished:
        unfinished.write_bytes(hashlib.sha256(content).digest() + content)
    latest_first = sorted(template.parent.glob("[!.]*"), key=lambda kept: kept.stat().st_mtime, reverse=True)
    for old in latest_first[MOST_KEPT:]:
        old.unlink(missing_ok=True)
