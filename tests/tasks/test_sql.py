import csv
import io
import json
import math
import resource

import duckdb
import pyarrow as pa
import pytest

from tasks import sql
from tasks.errors import RequestError, WorkError
from tasks.sql import format_table, list_tables, run_sql
from tasks.store import Store
from tasks.warehouse import build_warehouse


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("warehouse")
    build_warehouse(Store(folder / "store"), folder / "warehouse.duckdb")
    with duckdb.connect(folder / "warehouse.duckdb") as connection:
        connection.execute("INSERT INTO models (model_id, n_layers) VALUES ('a', 2), ('b', 1), ('c', NULL)")
    return folder / "warehouse.duckdb"


def test_a_query_gives_an_arrow_table(path):
    found = run_sql(path, "SELECT model_id, n_layers FROM models ORDER BY model_id;")
    assert found.schema == pa.schema({"model_id": pa.string(), "n_layers": pa.int32()})
    assert found["n_layers"].to_pylist() == [2, 1, None]


@pytest.mark.parametrize(
    "query",
    [
        "WITH x AS (SELECT 1 AS n) SELECT * FROM x",
        "FROM models",
        "VALUES (1)",
        "DESCRIBE heads",
        "SHOW TABLES",
        "SUMMARIZE models",
    ],
)
def test_whatever_only_reads_is_allowed(path, query):
    assert run_sql(path, query).num_rows > 0


def test_no_rows_have_columns_all_the_same(path):
    assert run_sql(path, "SELECT step FROM heads").schema == pa.schema({"step": pa.int32()})


@pytest.mark.parametrize(("limit", "n"), [(0, 0), (3, 3), (10_000, 10_000), (None, 20_000)])
def test_a_limit_cuts_the_result_off(path, limit, n):
    found = run_sql(path, "FROM range(20_000)", limit=limit)
    assert found["range"].to_pylist() == list(range(n))


def test_a_limit_stops_an_endless_query(path):
    assert run_sql(path, "FROM range(1_000_000_000_000)", limit=2).num_rows == 2


# Attacks


@pytest.mark.parametrize(
    "attack",
    [
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM read_blob('{secret}')",
        "SELECT * FROM read_csv('{secret}')",
        "SELECT * FROM read_json('{secret}')",
        "SELECT * FROM read_parquet('{secret}')",
        "SELECT * FROM sniff_csv('{secret}')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM '{secret}'",
        "SELECT * FROM read_text('https://example.com')",
        "SELECT * FROM query('SELECT * FROM read_text(''{secret}'')')",
        "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT * FROM read_text(''{secret}'')'))",
        "SELECT getenv('HOME')",
        "SELECT * FROM enable_logging()",
        "SELECT * FROM local_rows",
        "COPY models TO '{folder}/stolen.csv'",
        "COPY (SELECT 1) TO '{folder}/stolen.csv'",
        "EXPORT DATABASE '{folder}/stolen'",
        "ATTACH '{folder}/other.duckdb'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "PRAGMA enable_external_access = true",
        "PRAGMA database_list",
        "CALL pragma_version()",
        "USE memory",
        "DROP TABLE models",
        "DELETE FROM models",
        "INSERT INTO models (model_id) VALUES ('x')",
        "CREATE TABLE memory.mine (x INT)",
        "EXPLAIN ANALYZE DELETE FROM models",
        "SELECT 1; DROP TABLE models",
        "SELECT 1; SELECT 2",
        "",
        "-- nothing",
        "SELECT",
    ],
)
def test_attacks_are_refused_in_one_line(path, tmp_path, attack):
    local_rows = pa.table({"x": [1]})  # DuckDB would find it by its name
    (tmp_path / "secret.csv").write_text("user,password\nroot,1234\n")
    with pytest.raises(RequestError) as refusal:
        run_sql(path, attack.format(secret=tmp_path / "secret.csv", folder=tmp_path))
    assert "\n" not in str(refusal.value)
    assert "1234" not in str(refusal.value)
    assert [file.name for file in tmp_path.iterdir()] == ["secret.csv"]
    assert run_sql(path, "SELECT count(*) AS n FROM models")["n"].to_pylist() == [local_rows.num_rows + 2]


def test_no_secret_is_there_to_be_read(path):
    assert run_sql(path, "FROM duckdb_secrets()").num_rows == 0


def test_settings_are_locked_after_they_are_made(path):
    names = ("enable_external_access", "lock_configuration", "autoload_known_extensions", "python_enable_replacements")
    found = run_sql(path, f"SELECT name, value FROM duckdb_settings() WHERE name IN {names} ORDER BY name")
    assert found["value"].to_pylist() == ["false", "false", "true", "false"]


@pytest.mark.parametrize(
    "bomb",
    [
        "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r) SELECT count(*) FROM r",
        "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r) FROM r",
        "SELECT count(*) FROM range(10_000_000) a, range(10_000_000) b WHERE a.range * b.range = 7",
        "SELECT max(a.range) FROM range(10_000_000) a, range(10_000_000) b",
    ],
)
def test_a_query_that_does_not_end_is_stopped(path, bomb):
    with pytest.raises(RequestError, match=r"a query must end within 0\.2 s, this one did not"):
        run_sql(path, bomb, timeout_seconds=0.2)


def test_a_result_may_not_fill_the_memory(path, monkeypatch):
    monkeypatch.setattr(sql, "RESULT_GIB", 1 / 1024)
    with pytest.raises(RequestError, match="a result must take at most"):
        run_sql(path, "FROM range(1_000_000_000_000)")


def test_a_query_may_not_fill_the_memory(path, monkeypatch):
    monkeypatch.setattr(sql, "MEMORY_GIB", 1)
    for hungry in (
        "SELECT range(1_000_000_000)",
        "SELECT count(*) FROM (SELECT DISTINCT hash(range) FROM range(1_000_000_000))",
    ):
        with pytest.raises(RequestError, match="a query must do with 1 GiB of memory, this one did not"):
            run_sql(path, hungry)
    assert resource.getrlimit(resource.RLIMIT_AS) == sql._ADDRESS_SPACE


# Messages


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("SELECT * FROM head", 'Did you mean "heads"?'),
        ("SELECT n_layer FROM models", 'Candidate bindings: "n_layers"'),
        ("SELEC 1", 'syntax error at or near "SELEC"'),
        ("SELECT CAST(model_id AS INT) FROM models", "Could not convert string 'a' to INT32"),
    ],
)
def test_mistakes_get_duckdbs_advice(path, query, hint):
    with pytest.raises(RequestError) as refusal:
        run_sql(path, query)
    assert hint in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_without_a_warehouse_the_next_step_is_named(tmp_path):
    for ask in (lambda path: run_sql(path, "SELECT 1"), list_tables):
        with pytest.raises(RequestError, match="no results yet: run `headstream run quick`"):
            ask(tmp_path / "warehouse.duckdb")


def test_a_broken_warehouse_is_named(tmp_path):
    (tmp_path / "warehouse.duckdb").write_text("x" * 10_000)
    with pytest.raises(WorkError, match=r"warehouse\.duckdb must be a warehouse .* `headstream index`"):
        run_sql(tmp_path / "warehouse.duckdb", "SELECT 1")


def test_tables_are_listed_with_their_rows(path):
    rows = list_tables(path).to_pylist()
    assert {row["kind"] for row in rows} == {"view", "table"}
    assert {"name": "corpora", "kind": "table", "rows": 0, "comment": "One row a tokenised corpus."} in rows
    assert [row["rows"] for row in rows if row["name"] in ("models", "model_summary")] == [3, 3]


# Formats

ROWS = pa.table(
    {
        "name": ["a|b", None],
        "n": pa.array([12, None]),
        "score": [0.123456, math.nan],
        "yes": [True, None],
        "counts": [[4, 2], None],
    }
)


def test_csv_is_exact(path):
    found = run_sql(
        path,
        """SELECT 'a,"b"' AS text, 0.1::DOUBLE + 0.2::DOUBLE AS x, true AS yes, NULL AS nothing, sum(3) AS total""",
    )
    assert format_table(found, "csv") == 'text,x,yes,nothing,total\n"a,""b""",0.30000000000000004,true,,3'


def test_csv_keeps_every_character():
    texts = ["line\nbreak", 'quote"', " space ", "\x1b[31m", "-"]
    read = csv.reader(io.StringIO(format_table(pa.table({"text": texts}), "csv")))
    assert [row[0] for row in read] == ["text", *texts]


def test_json_is_a_list_of_records(path):
    assert json.loads(format_table(ROWS, "json")) == [
        {"name": "a|b", "n": 12, "score": 0.123456, "yes": True, "counts": [4, 2]},
        {"name": None, "n": None, "score": None, "yes": None, "counts": None},
    ]
    query = "SELECT 1 AS a, 2 AS a, 1.5 AS half, 'inf'::DOUBLE AS inf, sum(3) AS total, DATE '2025-01-02' AS day"
    expected = {"a": 1, "a_1": 2, "half": 1.5, "inf": None, "total": 3, "day": "2025-01-02"}
    assert json.loads(format_table(run_sql(path, query), "json")) == [expected]
    assert format_table(ROWS.slice(0, 0), "json") == "[]"


def test_markdown_is_escaped():
    text = "a|b\n<img> *x* `y` [z](u) __init__ model_id"
    found = format_table(pa.table({"model_id": [text], "n": [3.0]}), "markdown").splitlines()
    assert found[:2] == ["| model_id | n |", "| --- | ---: |"]
    assert found[2] == r"| a\|b\\n&lt;img&gt; \*x\* \`y\` \[z\](u) \_\_init\_\_ model_id | 3.000 |"
    assert len(found) == 3


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.123456, "0.1235"),
        (12.3, "12.30"),
        (0.0, "0.000"),
        (-1.5e-7, "-1.500e-07"),
        (12345.678, "12346"),
        (1e300, "1.000e+300"),
    ],
)
def test_floats_have_four_significant_digits(number, text):
    assert format_table(pa.table({"x": [number]})).split() == ["x", *["─" * len(text)], text]


def test_numbers_are_on_the_right_and_nothing_is_a_dash():
    lines = format_table(ROWS).splitlines()
    assert lines[0] == "name    n    score   yes    counts"
    assert lines[2] == "a|b    12   0.1235   true   [4, 2]"
    assert lines[3] == "–       –      nan   –      –"


def test_control_characters_and_markup_are_shown_as_they_are():
    assert "[bold]\\x1b[31m\\n" in format_table(pa.table({"text": ["[bold]\x1b[31m\n"]}))


def test_long_text_is_cut_off_at_the_terminals_width():
    table = pa.table({"text": ["long words " * 30], "n": [123456]})
    lines = format_table(table, width=40).splitlines()
    assert max(map(len, lines)) == 40
    assert lines[2].endswith("…   123456")
    assert "long words " * 29 in format_table(table)


def test_a_table_of_too_many_columns_is_turned(path):
    wide = pa.table({f"column_{i}": [i, 10 + i] for i in range(9)})
    lines = format_table(wide, width=40).splitlines()
    assert lines[0] == "column_0   0   10"
    assert len(lines) == 9


def test_a_table_of_too_many_columns_and_rows_is_printed_row_by_row():
    wide = pa.table({f"column_{i}": [f"{i}_{j}" for j in range(30)] for i in range(9)})
    lines = format_table(wide, width=40).splitlines()
    assert lines[8:11] == ["column_8   8_0", "", "column_0   0_1"]


def test_an_unknown_format_is_refused():
    with pytest.raises(RequestError, match="must be one of table, csv, json, markdown, got 'xml'"):
        format_table(ROWS, "xml")
