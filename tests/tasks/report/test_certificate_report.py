"""Certificates in the report's provenance: each check of each import, and nothing in a study without imports."""

from pathlib import Path

import duckdb
import pytest
from invented_study import Model, write_warehouse
from rendered import render_report

from headstream.tasks.results.study_results import open_results

IMPORTED, OTHER = (Model(n_layers=1, n_heads=1, seed=seed) for seed in (3, 4))


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory) -> Path:
    path = write_warehouse(tmp_path_factory.mktemp("imported") / "w.duckdb", IMPORTED, OTHER)
    rows = [
        (5, "parity", 2e-6, 1e-4, True, "last"),
        (0, "parity", 7e-6, 1e-4, True, "first"),
        (5, "finite", 0.0, 0.0, True, "weights"),
        (5, "continuation", None, None, None, "'a|b' goes on with 'c'"),
    ]
    with duckdb.connect(path) as connection:
        connection.executemany(
            "INSERT INTO certificates VALUES (?, ?, ?, ?, ?, ?, ?)", [(IMPORTED.model_id, *row) for row in rows]
        )
    return path


def test_the_last_checkpoint_and_the_worst_are_told(warehouse):
    with open_results(warehouse, "invented") as results:
        finite, parity, continuation = results.rows("certificates")
    assert (parity["last"], parity["highest"], parity["bar"], parity["checkpoints"]) == ("2e-06", "7e-06", "0.0001", 2)
    assert parity["detail"] == "last"
    assert (finite["last"], finite["bar"], finite["checkpoints"]) == ("0", "0", 1)
    assert continuation["last"] == continuation["bar"] == ""
    assert {row["model"] for row in (finite, parity, continuation)} == {IMPORTED.model_id}


def test_provenance_has_them(warehouse, tmp_path):
    render_report(warehouse, "invented", tmp_path)
    text = (tmp_path / "report.md").read_text()
    section = text.partition("### Every import")[2].partition("\n### ")[0]
    assert "'a|b' goes on with 'c'".replace("|", "\\|") in section
    assert "](queries/certificates.sql)" in section
