import re
from datetime import UTC, datetime, timedelta, timezone

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from headstream.tasks.errors import WorkError
from headstream.tasks.results.tables import quoted, schema_script, table_schema, tables, write_table


@pytest.fixture(scope="module")
def empty():
    with duckdb.connect() as connection:
        connection.execute(schema_script())
        yield connection


def test_tables_have_their_keys_first():
    assert tables()["heads"].key == ("model_id", "step", "layer", "head")
    for table in tables().values():
        assert tuple(table.schema.names[: len(table.key)]) == table.key


def test_every_table_and_column_has_a_comment(empty):
    uncommented = "SELECT table_name, NULL FROM duckdb_tables() WHERE comment IS NULL"
    uncommented += (
        " UNION ALL SELECT table_name, column_name FROM duckdb_columns() WHERE comment IS NULL AND NOT internal"
    )
    assert empty.execute(uncommented).fetchall() == []
    (comment,) = empty.execute("SELECT comment FROM duckdb_columns() WHERE column_name = 'cell'").fetchone()
    assert comment == "the model's place in the grid, like `n_layers=2 seed=0`"


def test_every_column_that_names_a_head_is_marked(empty):
    """Columns of heads' numbers go by their names or comments, those of labels by what is written of them."""
    query = "SELECT table_name, column_name, data_type, comment FROM duckdb_columns() WHERE NOT internal"
    for name, column, dtype, comment in empty.execute(query).fetchall():
        table = tables()[name]
        is_number = re.fullmatch(r"(\w+_)?head", column) or "counted from 0 within its layer" in comment
        if dtype == "INTEGER" and is_number and column not in ("d_head", "first_neuron"):
            (layer,) = re.findall(r"\[head of (\w+)(?: in \w+)?\]$", comment)
            assert layer in table.schema.names, (name, column)
            assert ((layer, column) in table.heads) == (" in " not in comment), (name, column)
        if dtype.startswith("VARCHAR") and re.search(r"L\dH\d|\bwriter|^heads ", comment):
            assert column in table.labels, (name, column)


def test_marks_name_columns_that_can_hold_what_they_say():
    for table in tables().values():
        for column in table.labels:
            assert table.schema.field(column).type in (pa.string(), pa.list_(pa.string()))
        for column in {column for place in table.heads for column in place}:
            assert table.schema.field(column).type == pa.int32()
    assert tables()["score_terms"].labels == ("query_source", "key_source")
    assert tables()["virtual_heads"].heads == (("first_layer", "first_head"), ("second_layer", "second_head"))
    assert tables()["head_matches"].heads == (("layer", "head"),), "the other head is another model's"


def test_no_column_needs_quotes(empty):
    for table in tables().values():
        empty.execute(f"SELECT {', '.join(table.schema.names)} FROM {table.name}")


def test_types_are_those_of_the_schema():
    assert table_schema("models").field("heads_per_layer").type == pa.list_(pa.int32())
    assert table_schema("studies").field("started_at").type == pa.timestamp("us")
    assert table_schema("training").field("tokens").type == pa.int64()


@pytest.mark.parametrize("df", [1, 2, 7, 29, 30, 31, 40, 199])
def test_t_quantiles_are_those_of_scipy(empty, df):
    (quantile,) = empty.execute("SELECT t_975(?)", [df]).fetchone()
    assert quantile == pytest.approx(stats.t.ppf(0.975, df), abs=1e-4)


def test_ci95_is_t_times_the_standard_error(empty):
    # sd of 1, 2, 3 is 1, t with 2 degrees of freedom 4.3027: 4.3027 / sqrt(3)
    query = (
        "SELECT ci95(x) FROM (VALUES ('a', 1), ('a', 2), ('a', 3), ('a', NULL), ('b', 7), ('b', 8)) t(g, x)"
        " GROUP BY g ORDER BY g"
    )
    assert empty.execute(query).fetchall() == [(pytest.approx(2.4842, abs=1e-4),), (None,)]  # two are too few


def test_rows_come_back_in_the_tables_order_and_types(tmp_path):
    rows = {"loss_nats": np.float32([2.5, np.nan]), "step": [20, 10], "model_id": ["a", "a"], "tokens": [7.0, np.nan]}
    read = pq.read_table(write_table(tmp_path, "training", rows))
    assert read.schema.names == ["model_id", "step", "tokens", "loss_nats"]
    assert [str(field.type) for field in read.schema] == ["string", "int32", "int64", "double"]
    assert read.to_pylist() == [
        {"model_id": "a", "step": 10, "tokens": None, "loss_nats": None},
        {"model_id": "a", "step": 20, "tokens": 7, "loss_nats": 2.5},
    ]


def test_equal_rows_give_equal_bytes_in_any_form_and_order(tmp_path):
    records = [{"model_id": "b", "step": 1}, {"model_id": "a", "step": 2, "loss_nats": 1.5}]
    frame = pd.DataFrame({"step": [2, 1], "model_id": ["a", "b"], "loss_nats": [1.5, None]}, index=[5, 6])
    columns = {"loss_nats": [None, 1.5], "model_id": ["b", "a"], "step": (1, 2)}
    assert len({write_table(tmp_path, "training", rows).read_bytes() for rows in (records, frame, columns)}) == 1


def test_a_scalar_stands_for_every_row(tmp_path):
    read = pq.read_table(write_table(tmp_path, "training", {"model_id": "a", "step": [1, 2]}))
    assert read["model_id"].to_pylist() == ["a", "a"]


def test_timestamps_are_stored_in_utc(tmp_path):
    noon = datetime(2025, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    read = pq.read_table(write_table(tmp_path, "studies", [{"study": "s", "started_at": noon}]))
    assert read["started_at"].to_pylist() == [datetime(2025, 1, 1, 10)]
    write_table(tmp_path, "studies", [{"study": "s", "started_at": datetime.now(UTC)}])


def test_lists_may_be_tuples_and_empty(tmp_path):
    rows = [{"model_id": "a", "heads_per_layer": (4, 2)}, {"model_id": "b", "heads_per_layer": []}]
    assert pq.read_table(write_table(tmp_path, "models", rows))["heads_per_layer"].to_pylist() == [[4, 2], []]
    write_table(tmp_path, "models", rows[1:])


@pytest.mark.parametrize("rows", [[], {}, pd.DataFrame()])
def test_no_rows_make_a_file_with_the_key(tmp_path, rows):
    read = pq.read_table(write_table(tmp_path, "heads", rows))
    assert read.num_rows == 0
    assert read.schema.names == ["model_id", "step", "layer", "head"]
    assert read.schema.field("step").type == pa.int32()


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("gradient_nrom", [1.0], "got 'gradient_nrom'. Did you mean gradient_norm?"),
        ("tokens", [1.5], "training.tokens must hold int64, got Float value 1.5"),
        ("tokens", ["12"], "training.tokens must hold int64, got"),
        ("tokens", [True], "training.tokens must hold int64, got bool, as in True"),
        ("step", [2**40], "training.step must hold int32, got"),
        ("model_id", [3], "training.model_id must hold string, got int64, as in 3"),
        ("model_id", [None], "training.model_id must have a value in every row"),
        ("step", [np.nan], "training.step must have a value in every row"),
        ("loss_nats", ["low"], "training.loss_nats must hold double, got"),
        ("loss_nats", [object()], "training.loss_nats must hold double, got"),
    ],
)
def test_wrong_columns_are_refused_in_one_line(tmp_path, column, values, message):
    with pytest.raises(WorkError) as refusal:
        write_table(tmp_path, "training", {"model_id": ["a"], "step": [1], column: values})
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert list(tmp_path.iterdir()) == []


def test_keys_must_be_there_and_differ(tmp_path):
    with pytest.raises(WorkError, match=r"must have its key, model_id, step, got none of step"):
        write_table(tmp_path, "training", {"model_id": ["a"]})
    with pytest.raises(WorkError, match="must differ in their key, got 2 with model_id=a, step=1"):
        write_table(tmp_path, "training", {"model_id": ["a", "b", "a"], "step": [1, 1, 1]})


def test_an_unknown_table_is_refused_with_the_nearest(tmp_path):
    with pytest.raises(WorkError, match=r"got 'head'. Did you mean heads"):
        write_table(tmp_path, "head", [])


def test_quoted_text_is_one_literal(empty):
    assert empty.execute("SELECT " + quoted("it's")).fetchone() == ("it's",)
