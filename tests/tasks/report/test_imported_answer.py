"""What the answer says of a model that came as it is."""

import re

import duckdb
import pytest
from invented_prompts import only_asked
from invented_study import Model, write_measurements
from rendered import render_report

from headstream.tasks.report.answer import answer_lines
from headstream.tasks.report.imported_words import importance_line, role_line
from headstream.tasks.report.page import said_once
from headstream.tasks.results.study_results import open_results

MODEL = Model()
LABEL = "run-7"


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    path = write_measurements(tmp_path_factory.mktemp("imported") / "w.duckdb", MODEL)
    with duckdb.connect(path) as connection:
        connection.execute("UPDATE models SET imported_as = ?, checkpoints = 1", [LABEL])
    return path


def with_effects(measured, tmp_path, effects: dict[str, tuple[float, float, float]]):
    """The same, with these costs of heads and their intervals; of all other heads nothing surely."""
    path = tmp_path / "w.duckdb"
    path.write_bytes(measured.read_bytes())
    with duckdb.connect(path) as connection:
        low = "UPDATE ablations SET loss_effect_nats = 0.0, ci_low_nats = -0.01, ci_high_nats = 0.01"
        connection.execute(low)
        for head, costs in effects.items():
            connection.execute(
                "UPDATE ablations SET loss_effect_nats = ?, ci_low_nats = ?, ci_high_nats = ?"
                " WHERE head_label(layer, head) = ?",
                [*costs, head],
            )
    return open_results(path, "invented")


def test_it_says_how_many_heads_do_what_under_the_name_that_models_gave(measured):
    with open_results(measured, "invented") as results:
        line, answer = role_line(results, LABEL), answer_lines(results)
    assert line.startswith("Of the 8 heads of run-7, ")
    assert "1 does induction" in line
    assert answer[0].startswith("run-7 has an induction head, L1H3:")
    assert answer[1] == line
    assert not any("seed" in each or "came as one" in each for each in answer)


def test_without_findings_there_is_no_heading_of_findings(measured, tmp_path):
    render_report(measured, "invented", tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert "Findings" not in text
    assert re.search(r"Of \d+ statements from the literature none is tested here: they are about what training", text)


def test_heads_that_are_told_apart_are_ranked(measured, tmp_path):
    costs = {"L0H0": (0.3, 0.2, 0.4), "L1H3": (0.1, 0.05, 0.15)}
    with with_effects(measured, tmp_path, costs) as results:
        assert importance_line(results, LABEL) == (
            "Without L0H0 (0.300 nats) and L1H3 (0.100 nats) run-7 loses most, their means in their place; 2 of 8 heads"
            " surely cost something, and L0H0 more than 7 others by intervals that don't overlap."
        )


@pytest.mark.parametrize(
    ("costs", "why"),
    [
        ({}, "none of 8 surely costs anything"),
        ({"L0H0": (0.3, 0.001, 0.6)}, "1 of 8 surely cost anything, and the intervals of these overlap with others"),
    ],
)
def test_others_are_said_to_need_more_text(measured, tmp_path, costs, why):
    with with_effects(measured, tmp_path, costs) as results:
        line = importance_line(results, LABEL)
    assert line.startswith("Which heads of run-7 matter most: too little text to rank them.")
    assert why in line


def test_a_reservation_is_made_once():
    assert said_once("a, if so; b, if so.", ", if so") == "a, if so; b."


def test_tables_of_provenance_name_it_as_models_did(measured):
    with open_results(measured, "invented") as results:
        assert [row["model"] for row in results.rows("models")] == [LABEL]


def test_a_study_of_behaviours_alone_is_answered_by_their_circuits(measured, tmp_path):
    path = tmp_path / "w.duckdb"
    path.write_bytes(measured.read_bytes())
    with duckdb.connect(path) as connection:
        only_asked(connection)
        about = "INSERT INTO {} BY NAME SELECT model_id, 'ioi' AS prompts, {} FROM models"
        connection.execute(about.format("prompt_scores", "1 AS step, 8 AS n_pairs, 0.9 AS accuracy, true AS can_do_it"))
        found = (
            "1200 AS n_edges, 30 AS n_edges_enough, 0.8 AS faithfulness_enough, 2 AS n_surely_in, 0.1 AS cmd_absolute"
        )
        connection.execute(about.format("prompt_circuits", found))
    facts = render_report(path, "invented", tmp_path)
    assert facts["answer"] == [
        "How run-7 does ioi (right in 0.90 of 8 pairs of prompts): 30 of 1,200 edges make 0.80 of the difference, on"
        " pairs that they were not found on; 2 are surely in."
    ]
    headings = [line for line in (tmp_path / "report.md").read_text().splitlines() if line.startswith("#")]
    assert headings == ["# invented", "## Circuits of behaviours", "## Provenance", "## Glossary"]
