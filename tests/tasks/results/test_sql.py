import math
import resource
import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headstream.tasks.errors import UserError, WorkError
from headstream.tasks.places import ROOT
from headstream.tasks.results import sql
from headstream.tasks.results.sql import list_columns, list_tables, run_sql
from headstream.tasks.results.warehouse import build_warehouse
from headstream.tasks.storage.store import Store


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
        "PIVOT models ON n_layers USING count(*)",
        "SELECT * FROM (PIVOT models ON model_id IN ('a', 'b') USING sum(n_layers))",
        "-- a comment\nSELECT 1",
    ],
)
def test_whatever_only_reads_is_allowed(path, query):
    assert run_sql(path, query).num_rows == run_sql(path, query, lossless=True).num_rows > 0


def test_lossless_results_have_the_columns_and_the_order_of_the_query(path):
    query = 'SELECT range AS "a ""b", (range, 1) AS "a ""b" FROM range(20_000) ORDER BY range DESC'
    found = run_sql(path, query, lossless=True)
    assert found.column_names == ['a "b', 'a "b']
    assert found.column(0).to_pylist() == list(range(20_000))[::-1]
    assert found.column(1)[0].as_py() == "[19999,1]"


def test_no_rows_have_columns_all_the_same(path):
    assert run_sql(path, "SELECT step FROM heads").schema == pa.schema({"step": pa.int32()})


def test_a_result_of_many_batches_is_whole(path):
    assert run_sql(path, "FROM range(20_000)")["range"].to_pylist() == list(range(20_000))


# Attacks

SECRET, TOKEN = "swordfish", "tok-0badcafe"
REFUSED = {
    # files
    "read_text": "FROM read_text('{secret}.csv')",
    "read_blob": "FROM read_blob('{secret}.csv')",
    "read_csv": "FROM read_csv('{secret}.csv')",
    "read_json": "FROM read_json('{secret}.json')",
    "read_parquet": "FROM read_parquet('{secret}.parquet')",
    "parquet_schema": "FROM parquet_schema('{secret}.parquet')",
    "parquet_kv_metadata": "FROM parquet_kv_metadata('{secret}.parquet')",
    "sniff_csv": "FROM sniff_csv('{secret}.csv')",
    "glob": "FROM glob('{folder}/*')",
    "glob of the root": "FROM glob('/*')",
    "environment of the process": "FROM read_text('/proc/self/environ')",
    "standard input": "FROM read_csv('/dev/stdin')",
    "another database": "FROM read_duckdb('{secret}.duckdb')",
    "a file beside the warehouse": "FROM read_text('{warehouse}.lock')",
    "name of a file": "FROM '{secret}.csv'",
    "name of a file right here": "FROM 'secret.csv'",
    "quoted name of a file": 'FROM "{secret}.csv"',
    "name of the warehouse": "FROM '{warehouse}'",
    "query_table": "FROM query_table('{secret}.csv')",
    "query": "FROM query('FROM read_text(''{secret}.csv'')')",
    "query that writes": "FROM query('COPY models TO ''{folder}/stolen.csv''')",
    "serialised query": "FROM json_execute_serialized_sql(json_serialize_sql('FROM read_text(''{secret}.csv'')'))",
    "copy to": "COPY models TO '{folder}/stolen.csv'",
    "copy a query to": "COPY (SELECT 1) TO '{folder}/stolen.csv'",
    "copy from": "COPY models FROM '{secret}.csv'",
    "copy a database": "COPY FROM DATABASE results TO memory",
    "export": "EXPORT DATABASE '{folder}/stolen'",
    "import": "IMPORT DATABASE '{folder}'",
    # network
    "https": "FROM read_text('https://example.com')",
    "name at http": "FROM 'http://127.0.0.1:9/x.parquet'",
    "name at s3": "FROM 's3://bucket/x.parquet'",
    # databases, extensions
    "attach": "ATTACH '{folder}/stolen.duckdb'",
    "attach memory": "ATTACH ':memory:' AS other",
    "attach sqlite": "ATTACH '{folder}/stolen.db' (TYPE sqlite)",
    "attach postgres": "ATTACH 'dbname=postgres' AS other (TYPE postgres)",
    "detach": "DETACH results",
    "use": "USE memory",
    "install": "INSTALL httpfs",
    "install from": "FORCE INSTALL httpfs FROM 'http://127.0.0.1:9'",
    "load": "LOAD httpfs",
    "load a file": "LOAD '{secret}.csv'",
    "update extensions": "UPDATE EXTENSIONS",
    "list extensions": "FROM duckdb_extensions()",
    # settings, secrets
    "set": "SET enable_external_access = true",
    "set session": "SET SESSION temp_directory = '{folder}'",
    "set global": "SET GLOBAL allowed_directories = ['/']",
    "set memory": "SET memory_limit = '1TB'",
    "set variable": "SET VARIABLE x = 1",
    "reset": "RESET lock_configuration",
    "pragma": "PRAGMA enable_external_access = true",
    "pragma that lists": "PRAGMA database_list",
    "profiling": "FROM enable_profiling()",
    "logging": "FROM enable_logging()",
    "secret": "CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
    "persistent secret": "CREATE PERSISTENT SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
    "getenv": "SELECT getenv('HEADSTREAM_TEST_TOKEN')",
    "variable of Python": "FROM local_rows",
    # changes
    "drop": "DROP TABLE models",
    "delete": "DELETE FROM models",
    "truncate": "TRUNCATE models",
    "update": "UPDATE models SET n_layers = 7",
    "insert": "INSERT INTO models (model_id) VALUES ('x')",
    "merge": "MERGE INTO models USING (SELECT 1) s ON false WHEN NOT MATCHED THEN INSERT (model_id) VALUES ('x')",
    "insert within a query": "WITH new AS (INSERT INTO models (model_id) VALUES ('x') RETURNING *) FROM new",
    "alter": "ALTER TABLE models ADD COLUMN x INT",
    "comment": "COMMENT ON TABLE models IS 'x'",
    "create a table": "CREATE TABLE memory.mine (x INT)",
    "create a temporary table": "CREATE TEMP TABLE mine AS FROM read_text('{secret}.csv')",
    "create a view": "CREATE VIEW memory.mine AS SELECT 1",
    "create a macro": "CREATE MACRO memory.mine() AS 1",
    "create a type": "CREATE TYPE memory.mine AS ENUM ('a')",
    "transaction": "BEGIN",
    "checkpoint": "CHECKPOINT",
    "vacuum": "VACUUM",
    # several, none, prepared
    "two statements": "SELECT 1; SELECT 2",
    "a second statement": "SELECT 1; DROP TABLE models",
    "a statement behind NUL": "SELECT 1\0; DROP TABLE models",
    "prepare": "PREPARE p AS SELECT 1",
    "execute": "EXECUTE p",
    "call": "CALL pragma_version()",
    "pivot of a change": "PIVOT (INSERT INTO models (model_id) VALUES ('x') RETURNING *) ON model_id USING sum(1)",
    "pivot of a file": "PIVOT read_csv('{secret}.csv') ON user USING count(*)",
    "pivot of a name of a file": "PIVOT '{secret}.csv' ON user USING count(*)",
    "a second pivot": "PIVOT models ON n_layers USING count(*); DROP TABLE models",
    "explain": "EXPLAIN ANALYZE DELETE FROM models",
    "placeholder": "SELECT ?",
    "nothing": "",
    "comment alone": "-- nothing",
    "half": "SELECT",
    # what is no text, too deep or too long
    "bytes": "SELECT '\udcff'",
    "deep": f"SELECT {'(' * 40_000}1{')' * 40_000}",
    "deep lists": f"SELECT {'[' * 40_000}{']' * 40_000}",
    "long": f"SELECT '{'x' * sql.QUERY_LENGTH}'",
    "long and wrong": f"SELECT 1 /*{'x' * 90_000}",
}


@pytest.fixture
def secret(tmp_path, monkeypatch) -> Path:
    """Files and a variable that nobody may see: the files' path without suffix."""
    monkeypatch.setenv("HEADSTREAM_TEST_TOKEN", TOKEN)
    secret = tmp_path / "secret"
    secret.with_suffix(".csv").write_text(f"user,password\nroot,{SECRET}\n")
    secret.with_suffix(".json").write_text(f'{{"password": "{SECRET}"}}')
    pq.write_table(pa.table({"password": [SECRET]}), secret.with_suffix(".parquet"))
    with duckdb.connect(secret.with_suffix(".duckdb")) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT '{SECRET}' AS password")
    return secret


@pytest.mark.parametrize("attack", REFUSED.values(), ids=REFUSED)
def test_attacks_are_refused_in_one_line(path, secret, monkeypatch, attack):
    local_rows = pa.table({"x": [1]})  # DuckDB would find it by its name
    monkeypatch.chdir(secret.parent)
    there, before = sorted(secret.parent.iterdir()), path.read_bytes()
    for name, value in {"secret": secret, "folder": secret.parent, "warehouse": path}.items():
        attack = attack.replace(f"{{{name}}}", str(value))
    with pytest.raises(UserError) as refusal:
        run_sql(path, attack)
    message = str(refusal.value)
    assert "\n" not in message
    assert len(message) < 700
    assert SECRET not in message
    assert TOKEN not in message
    assert sorted(secret.parent.iterdir()) == there
    assert path.read_bytes() == before
    assert local_rows.num_rows == 1


def leaks(connection: duckdb.DuckDBPyConnection, secret: Path) -> set[str]:
    """Functions of DuckDB that give away a secret when they are called with its name."""
    known = "SELECT DISTINCT function_name, contains(function_type, 'table') FROM duckdb_functions() WHERE internal"
    names = [*(f"{secret}.{suffix}" for suffix in ("csv", "json")), "HEADSTREAM_TEST_TOKEN"]
    found = set()
    for function, is_table in connection.execute(known).fetchall():
        for name in names if function.isidentifier() else ():
            try:
                rows = connection.execute(f"SELECT {'* FROM ' * is_table}{function}('{name}')").fetchmany(100)
            except duckdb.Error as error:
                rows = [str(error)]
            if SECRET in str(rows) or TOKEN in str(rows):
                found.add(function)
    return found


def test_no_function_reads_a_file_or_the_environment(path, secret):
    with duckdb.connect() as connection:
        assert leaks(connection, secret) >= {"read_text", "read_blob", "read_csv", "read_json"}
    with sql._sandbox(path) as connection:
        assert not leaks(connection, secret)


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
        "SELECT sleep_ms(100_000)",
        "SELECT levenshtein(repeat('a', 1_000_000), repeat('b', 1_000_000))",
    ],
)
def test_a_query_that_does_not_end_is_stopped(path, bomb):
    with pytest.raises(UserError, match=r"the query took more than 0\.2 s"):
        run_sql(path, bomb, timeout_seconds=0.2)


def test_a_query_that_heeds_no_interrupt_ends_its_process(path):
    code = f"""
from pathlib import Path
from headstream.tasks.results import sql
sql.STUBBORN_SECONDS = 0.2
sql.run_sql(Path({str(path)!r}), "SELECT repeat('9', 10_000_000)::BIGNUM", timeout_seconds=0.2)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "headstream: the query took more than 0.2 s, and can't be interrupted.\n"


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf])
def test_there_is_always_a_time_limit(path, seconds):
    with pytest.raises(UserError, match="the timeout must be over 0 and at most"):
        run_sql(path, "SELECT 1", timeout_seconds=seconds)


def test_a_result_may_not_fill_the_memory(path, monkeypatch):
    monkeypatch.setattr(sql, "RESULT_MIB", 1)
    with pytest.raises(UserError, match="the result takes more than"):
        run_sql(path, "FROM range(1_000_000_000_000)")


def test_a_query_may_not_fill_the_memory(path, monkeypatch):
    monkeypatch.setattr(sql, "MEMORY_GIB", 1)
    for hungry in (
        "SELECT range(1_000_000_000)",
        "SELECT count(*) FROM (SELECT DISTINCT hash(range) FROM range(1_000_000_000))",
    ):
        with pytest.raises(UserError, match="the query needed more than 1 GiB of memory"):
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
    with pytest.raises(UserError) as refusal:
        run_sql(path, query)
    assert hint in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_without_a_warehouse_the_next_step_is_named(tmp_path):
    for ask in (lambda path: run_sql(path, "SELECT 1"), list_tables):
        with pytest.raises(UserError, match="no results yet: run `headstream run quick`"):
            ask(tmp_path / "warehouse.duckdb")


def test_a_broken_warehouse_is_named(tmp_path):
    (tmp_path / "warehouse.duckdb").write_text("x" * 10_000)
    with pytest.raises(WorkError, match=r"warehouse\.duckdb is damaged, or .* `headstream index`"):
        run_sql(tmp_path / "warehouse.duckdb", "SELECT 1")


def test_the_columns_of_a_table_are_listed_with_their_comments(path):
    rows = list_columns(path, "STUDIES").to_pylist()
    assert rows[0]["column"] == "study"
    assert {"column": "question", "type": "varchar", "comment": "what the study asks, in its author's words"} in rows
    assert list_columns(path, "head_summary").num_rows > 5
    with pytest.raises(UserError, match=r"'head' is neither SQL nor the name of a table or view\. Did you mean heads"):
        list_columns(path, "head")


def test_tables_are_listed_with_their_rows(path):
    rows = list_tables(path).to_pylist()
    assert {row["kind"] for row in rows} == {"view", "table"}
    assert {"name": "corpora", "kind": "table", "rows": 0, "comment": "One row a tokenised corpus."} in rows
    assert [row["rows"] for row in rows if row["name"] in ("models", "model_summary")] == [3, 3]
