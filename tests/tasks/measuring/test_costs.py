"""The stage that times passes: its table, what its numbers must agree with, and the exponents that a view fits."""

import pyarrow.parquet as pq
import pytest
from empty_warehouse import empty_warehouse
from pydantic import ValidationError

from headstream.models.flops import forward_flops
from headstream.tasks.measuring.costs import D_VOCAB, Pass, architectures_of, time_passes
from headstream.tasks.results.tables import table_schema, write_table
from headstream.tasks.study.costs_config import CostsConfig

CONFIG = CostsConfig(
    **{"n_ctx": (17, 37, 67), "d_model": (6, 13), "n_heads": (1, 2, 4), "max_full_n_ctx": 50, "attention_window": 5},
    **{"narrow_d_model": 7, "base_n_ctx": 19, "heads_n_ctx": (23, 29), "base_d_model": 8, "repeats": 1},
)


def measured(folder, config=CONFIG):
    heard = []
    facts = time_passes(config, "invented", folder, heard.append)
    assert heard == sorted(heard)
    assert heard[-1] == 1
    return facts, pq.read_table(folder / "costs.parquet")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return measured(tmp_path_factory.mktemp("costs"))[1]


@pytest.fixture
def exponents_of(tmp_path):
    """A function from rows of `costs` to those of the view."""
    with empty_warehouse() as connection:

        def exponents(rows: list[dict]) -> list[dict]:
            file = write_table(tmp_path, "costs", [{"study": "s", **row} for row in rows])
            connection.execute("DELETE FROM costs")
            connection.execute("INSERT INTO costs BY NAME FROM read_parquet(?)", [str(file)])
            return connection.sql("FROM cost_exponents").to_arrow_table().to_pylist()

        yield exponents


def test_every_pass_of_every_series_has_a_row(table):
    assert table.schema.names == table_schema("costs").names
    rows = table.to_pylist()
    series = {(row["axis"], row["attention"], row["n_ctx"], row["d_model"], row["n_heads"]) for row in rows}
    assert series == {
        *(("n_ctx", "full", n, 7, 1) for n in (17, 37)),
        *(("n_ctx", "local", n, 7, 1) for n in (17, 37, 67)),
        *(("d_model", "full", 19, width, 1) for width in (6, 13)),
        *(("n_heads", "full", length, 8, n) for length in (23, 29) for n in (1, 2, 4)),
    }
    assert len(rows) == 2 * len(series)
    assert {row["attention_window"] for row in rows if row["attention"] == "local"} == {5}
    assert {row["attention_window"] for row in rows if row["attention"] == "full"} == {None}
    assert all(row["seconds"] > 0 for row in rows)


def test_what_is_counted_is_what_the_formula_says(table):
    for row in table.to_pylist():
        assert row["flops_counted"] == row["flops_formula"] > 0
    forward, both = ([r for r in table.to_pylist() if r["pass"] == name] for name in ("forward", "forward_backward"))
    assert [row["flops_counted"] for row in both] == [3 * row["flops_counted"] for row in forward]
    by_heads = {(row["n_ctx"], row["flops_counted"]) for row in forward if row["axis"] == "n_heads"}
    assert sorted(length for length, _ in by_heads) == [23, 29]


def test_bytes_hold_the_weights_and_then_the_gradients():
    (architecture,) = architectures_of(CostsConfig(d_model=(83,), base_n_ctx=2))["d_model"]
    forward, both = (Pass("d_model", architecture, name) for name in ("forward", "forward_backward"))
    weights = sum(4 * parameter.numel() for parameter in forward.model.parameters())
    joined = 4 * 3 * 83 * 83  # W_Q, W_K and W_V side by side
    assert weights + joined < forward.row()["bytes"] < weights + joined + 10_000
    assert 2 * weights < both.row()["bytes"] < 3.2 * weights
    assert both.row() == both.row(), "no gradients are left"


def test_bytes_grow_as_the_scores_that_attention_forms():
    config = CostsConfig(n_ctx=(1024, 2048), max_full_n_ctx=2048, attention_window=64)
    for name in ("forward", "forward_backward"):
        passes = [Pass("n_ctx", architecture, name) for architecture in architectures_of(config)["n_ctx"]]
        full, twice_full, local, twice_local = (timed.peak_bytes() for timed in passes)
        assert twice_full / full == pytest.approx(4, abs=0.2)
        assert twice_local / local == pytest.approx(2, abs=0.1)


def test_a_study_without_sizes_has_no_costs(tmp_path):
    assert time_passes(CostsConfig(), "invented", tmp_path) == {"study": "invented", "passes": 0}
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_ctx": (64, 256)}, "n_ctx must be at least attention_window=128, got 64"),
        ({"d_model": (64, 32)}, "d_model must ascend, got 64, 32"),
        ({"n_heads": (2, 2)}, "n_heads must ascend, got 2, 2"),
        ({"heads_n_ctx": (512, 128)}, "heads_n_ctx must ascend, got 512, 128"),
        ({"n_heads": (1, 3)}, "n_heads must divide base_d_model=256, got 3"),
        ({"d_model": (0, 32)}, "greater than 0"),
    ],
)
def test_sizes_that_make_no_model_are_refused(given, message):
    with pytest.raises(ValidationError, match=message):
        CostsConfig(**given)


# Exponents


def row_of(axis: str, attention: str, size: int, **numbers: float) -> dict:
    place = {"axis": axis, "attention": attention, "config_id": f"{attention} {size}", "pass": "forward"}
    sizes = {"n_ctx": 3, "d_model": 5, "n_heads": 1} | {axis: size}
    return place | sizes | {"seconds": 1.0, "flops_counted": 1, "bytes": 1} | numbers


def test_exponents_are_those_of_the_larger_half(exponents_of):
    sizes = (1, 2, 4, 8, 16)
    rows = [row_of("n_ctx", "full", n, seconds=1e-3 * max(n, 4) ** 1.5, flops_counted=7 * n**2, bytes=n) for n in sizes]
    rows += [row_of("n_ctx", "local", n, flops_counted=10 * n) for n in sizes[:4]]
    rows += [row_of("d_model", "full", n, flops_counted=n**3) for n in (2, 4, 32)]
    rows += [row_of("n_heads", "full", n) for n in sizes]
    found = {(row["axis"], row["attention"]): row for row in exponents_of(rows)}
    full, local, wide = found["n_ctx", "full"], found["n_ctx", "local"], found["d_model", "full"]
    assert len(found) == 3
    assert (full["n_sizes"], full["smallest_size"], full["largest_size"]) == (3, 4, 16)
    assert full["flops_exponent"] == pytest.approx(2)
    assert full["seconds_exponent"] == pytest.approx(1.5)
    assert full["bytes_exponent"] == pytest.approx(1)
    assert (local["smallest_size"], local["largest_size"]) == (4, 8)
    assert local["flops_exponent"] == pytest.approx(1)
    assert local["seconds_exponent"] == pytest.approx(0, abs=1e-12)
    assert (wide["smallest_size"], wide["flops_exponent"]) == (4, pytest.approx(3))


def test_one_size_has_no_exponent_and_two_have_one(exponents_of):
    (one,) = exponents_of([row_of("n_ctx", "full", 4)])
    assert (one["n_sizes"], one["flops_exponent"]) == (1, None)
    (two,) = exponents_of([row_of("n_ctx", "full", n, flops_counted=n**2) for n in (4, 8)])
    assert (two["n_sizes"], two["flops_exponent"]) == (2, pytest.approx(2))


def test_flops_of_real_models_have_the_exponents_of_theory(exponents_of):
    config = CostsConfig(n_ctx=(256, 512, 1024, 2048, 4096, 8192), d_model=(64, 128, 256, 512, 1024, 2048))
    rows = [
        row_of(axis, a.attention, getattr(a, axis), flops_counted=forward_flops(a, D_VOCAB, a.n_ctx))
        for axis, architectures in architectures_of(config).items()
        for a in architectures
    ]
    found = {(row["axis"], row["attention"]): row["flops_exponent"] for row in exponents_of(rows)}
    expected = {("n_ctx", "full"): 2, ("n_ctx", "local"): 1, ("d_model", "full"): 2}
    assert found == {series: pytest.approx(exponent, abs=0.1) for series, exponent in expected.items()}
