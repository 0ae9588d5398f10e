"""What a report says of importance, pruning, redundancy and probes, first of all how many heads matter."""

import pytest
from invented_study import Model, write_warehouse

from tasks.markdown import table_with_error_bars
from tasks.report.answer import MAX_LINES, answer_lines
from tasks.report.pruning_words import loss_line, mean_of
from tasks.results.study_results import open_results

HEAD_COUNTS = [
    Model(n_heads=n, seed=seed, loss=2 + 0.4 / n + 0.01 * seed, spare=n - 1 + seed * (n > 1), induction=0.1 * n)
    for n in (1, 2, 4)
    for seed in (0, 1)
]


@pytest.fixture
def told(tmp_path):
    """A function that answers the question of an invented study."""

    def tell(*models: Model, **options) -> list[str]:
        path = write_warehouse(tmp_path / f"{len(list(tmp_path.iterdir()))}.duckdb", *models, **options)
        with open_results(path, "invented") as results:
            return answer_lines(results)

    return tell


# How many heads, and how many of them matter


def test_a_study_of_head_counts_is_answered_first(told):
    lines = told(*HEAD_COUNTS)
    # two seeds 0.01 apart: 12.7062 * 0.01 / 2 = 0.064; 3 and 4 heads: 12.7062 / 2 = 6.4
    assert lines[0] == (
        "Validation loss by number of heads (n_layers=2): 2.405 ± 0.064 (2), 2.205 ± 0.064 (4), 2.105 ± 0.064 (8) nats "
        "per token, lowest with 8; the first step gains 0.200 nats, the last 0.100: gains shrink."
    )
    assert lines[1] == (
        "Of 8 heads of 2L4H, 3.5 ± 6.4 can be removed at under 1\u00a0% more loss and 4.5 ± 6.4 at under 5\u00a0%, by "
        "iterative pruning on ablation_mean; random orders allow 0.2 ± 0.0 at under 1\u00a0%. With fewer heads, "
        "0.0 ± 0.0 of 2, 1.5 ± 6.4 of 4 can be removed at under 1\u00a0%."
    )
    assert lines[2].startswith("2L4H has an induction head in 2 of 2 seeds")
    assert len(lines) == MAX_LINES


def test_another_study_has_one_line_of_pruning(told):
    lines = told(Model(), Model(n_layers=1, n_heads=2, induction=0.02, loss=2.8))
    assert lines[0].startswith("2L4H has an induction head, L1H3")
    assert [line for line in lines if "can be removed" in line] == [
        "Of 8 heads of 2L4H, 3 can be removed at under 1\u00a0% more loss and 4 at under 5\u00a0%, by iterative "
        "pruning on ablation_mean; random orders allow 0.2 at under 1\u00a0%."
    ]
    assert lines[-1].startswith("Keys of L1H3 read L0H0")


def test_what_was_not_pruned_is_not_told_of(told):
    lines = told(Model(n_heads=1), without={"pruning"})
    assert not [line for line in lines if "can be removed" in line]
    lines = told(Model(n_heads=2), Model(), without={"pruning"})
    assert lines[0].startswith("Validation loss by number of heads")
    assert " has an induction head" in lines[1]


def groups(*losses: float | None, setting: str = "") -> list[dict]:
    """Rows of heads_that_matter with 1, 2, 4, ... heads."""
    return [
        {"setting": setting, "total_heads": 2**i, "validation_loss_nats_mean": loss, "validation_loss_nats_ci95": None}
        for i, loss in enumerate(losses)
    ]


def test_gains_are_told_as_they_are():
    start = "Validation loss by number of heads: "
    assert loss_line(groups(3.0, 2.5, 2.25)) == (
        f"{start}3.000 (1), 2.500 (2), 2.250 (4) nats per token, lowest with 4; the first step gains 0.500 nats, "
        "the last 0.250: gains shrink."
    )
    assert loss_line(groups(3.0, 2.9, 2.5, 2.6)).endswith(
        "lowest with 4; the first step gains 0.100 nats, the last -0.100: gains shrink."
    )
    assert loss_line(groups(3.0, 2.9, 2.5)).endswith("the last 0.400: gains don't shrink.")
    assert loss_line(groups(3.0, None, 2.5)) == (
        f"{start}3.000 (1), missing (2), 2.500 (4) nats per token; the step gains 0.500 nats."
    )
    assert loss_line(groups(None, 2.5, setting="d_model=8")) == (
        "Validation loss by number of heads (d_model=8): missing (1), 2.500 (2) nats per token."
    )


def test_whole_numbers_have_no_decimals():
    values = {"a_mean": 3.0, "a_ci95": None, "b_mean": 0.25, "b_ci95": None, "c_mean": 3.0, "c_ci95": 1.25}
    values |= {"d_mean": None, "d_ci95": None}
    assert [mean_of(values, name) for name in "abcd"] == ["3", "0.2", "3.0 ± 1.2", "missing"]


# Tables


def test_tables_have_error_bars_over_seeds(tmp_path):
    models = [Model(seed=seed, n_heads=2, spare=1 + seed) for seed in (0, 1)]
    with open_results(write_warehouse(tmp_path / "w.duckdb", *models), "invented") as results:

        def shown(query: str) -> str:
            return table_with_error_bars(results.rows(query)).replace("\u00a0", " ")

        assert "| 2L2H | L0H0 | 0.500 | 0.550 | 0.250 | 0.400 |" in shown("ablated_heads")
        assert shown("prunable_heads").endswith(
            "| 2L2H | 2 | 4 | 1.5 ± 6.4 / 2.5 ± 6.4 | 2.5 ± 6.4 / 3.5 ± 6.4 | 0.5 ± 6.4 / 1.5 ± 6.4 "
            "| 1.5 ± 6.4 / 1.5 ± 6.4 | 0.2 ± 0.0 / 2.2 ± 0.0 |"
        )
        assert "| 2L2H | 0.010 | 2 of 4 | 2.300 | 2.369 | 2.369 | 2.379 |" in shown("gate_sweeps")
        assert "| 2L2H | iterative | within 1 % | 3 of 4 | 0.800 | 0.800 | 0.750 | 0.500 | 2.305 | 0.002 |" in shown(
            "pruned_models"
        )
        assert "| 2L2H | 2 | 2 of 12 | 0.167 ± 0.000 | L0H1 and L1H0 | 0.100 |" in shown("redundancy")
        assert "| 2L2H | L0H1 | L1H0 | 0.100 | 0.900 | 0.800 | 0.004 | 0.008 | 0.212 |" in shown("redundant_pairs")
        assert "| 2L2H | lexical_class | 2 | L1H1 | 0.300 ± 0.000 | R2 | 0.330 ± 0.000 |" in shown("probe_summary")
        assert "| part_of_speech | the corpus is not in CoNLL-U | 2 |" in shown("absent_probes")
