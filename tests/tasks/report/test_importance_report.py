"""What a report says of importance, pruning, redundancy and probes, first of all how many heads matter."""

from math import sqrt
from statistics import fmean, median, stdev

import pytest
from invented_study import Model, write_measurements

from headstream.tasks.report.answer import MAX_LINES, answer_lines
from headstream.tasks.report.over_seeds import mean_of, median_of
from headstream.tasks.report.pruning_words import loss_line
from headstream.tasks.results.study_results import open_results
from headstream.tasks.words.markdown import table_with_spreads

HEAD_COUNTS = [
    Model(n_heads=n, seed=seed, loss=2 + 0.4 / n + 0.01 * seed, spare=n - 1 + (seed > 0) * (n > 1), induction=0.1 * n)
    for n in (1, 2, 4)
    for seed in (0, 1, 2)
]


@pytest.fixture
def told(tmp_path):
    """A function that answers the question of an invented study."""

    def tell(*models: Model, **options) -> list[str]:
        path = write_measurements(tmp_path / f"{len(list(tmp_path.iterdir()))}.duckdb", *models, **options)
        with open_results(path, "invented") as results:
            return answer_lines(results)

    return tell


# How many heads, and how many of them matter


def test_a_study_of_head_counts_is_answered_first(told):
    lines = told(*HEAD_COUNTS)
    # three seeds 0.01 apart: 4.3027 * 0.01 / sqrt(3) = 0.025; seed by seed, gains are the same
    assert lines[0] == (
        "Validation loss by number of heads (n_layers=2), nats per token: 2.41 ± 0.02 with 2; 2.21 ± 0.02 with 4; "
        "2.11 ± 0.02 with 8. It is lowest with 8 heads; the first step gains 0.200 ± 0.000 nats, the last gains "
        "0.100 ± 0.000 nats, which is less."
    )
    assert lines[1] == (
        "Of 8 heads of 2L4H, 4 (3 to 4) can be removed at under 1\u00a0% more loss and 5 (4 to 5) at under 5\u00a0%, "
        "by iterative pruning on ablation_mean (median and range over seeds); random orders allow 0.2 at under "
        "1\u00a0%. With fewer heads, 0 of 2; 2 (1 to 2) of 4 can be removed at under 1\u00a0%."
    )
    assert lines[2].startswith("2L4H has an induction head in 3 of 3 seeds")
    assert len(lines) == MAX_LINES


def test_another_study_has_one_line_of_pruning(told):
    lines = told(Model(), Model(n_layers=1, n_heads=2, induction=0.02, loss=2.8))
    assert lines[0].startswith("2L4H, of one seed, has an induction head, L1H3")
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


def groups(*losses: list[float] | float | None, setting: str = "") -> list[dict]:
    """Rows of heads_that_matter with 1, 2, 4, ... heads; a list has a loss for each seed."""
    rows = []
    for i, loss in enumerate(losses):
        seeds = loss if isinstance(loss, list) else [loss]
        ci95 = 4.3027 * stdev(seeds) / sqrt(3) if len(seeds) == 3 else None
        mean = None if seeds[0] is None else fmean(seeds)
        row = {"setting": setting, "total_heads": 2**i, "seeds": [*range(len(seeds))]}
        spread = {"validation_loss_nats_ci95": ci95, "validation_loss_nats_values": seeds}
        rows.append(row | {"validation_loss_nats_mean": mean} | spread)
    return rows


def test_only_gains_that_can_be_told_are_told():
    """The losses of heads as once measured: at 8 and 16 heads they can't be told apart."""
    two, four, eight = [3.176, 3.162, 3.168], [2.817, 2.873, 2.772], [2.623, 2.665, 2.603]
    sixteen = [2.633, 2.639, 2.612]
    assert loss_line(groups(two, four, eight, sixteen)).endswith(
        "2.63 ± 0.08 with 4; 2.63 ± 0.04 with 8. It is lowest with 8 heads, though its difference from 4 heads isn't "
        "significant; the first step gains 0.348 ± 0.135 nats, the last gains 0.002 ± 0.051 nats, which is less."
    )
    assert loss_line(groups(two, four)).endswith("It is lowest with 2 heads; the step gains 0.348 ± 0.135 nats.")
    noisy = [[3.0, 3.1, 3.2], [2.9, 3.2, 2.9], [2.8, 2.9, 3.1]]
    assert loss_line(groups(*noisy)).endswith(": whether that is less can't be told.")
    growing = [[3.0, 3.1, 3.2], [2.95, 3.06, 3.14], [2.5, 2.6, 2.7]]
    assert loss_line(groups(*growing)).endswith(", which is more.")
    assert loss_line(groups(two, eight, four)).endswith("nats, the last loses 0.190 ± 0.049 nats.")


def test_under_three_seeds_nothing_is_ordered():
    start = "Validation loss by number of heads, nats per token: "
    chance = ", which other seeds may change (an interval needs three)."
    assert loss_line(groups(3.0, 2.5, 2.25)) == (
        f"{start}3.00 with 1; 2.50 with 2; 2.25 with 4. It is lowest with 4 heads{chance}"
    )
    assert loss_line(groups([3.0, 3.1], [2.5, 2.6])) == (
        f"{start}3.00, 3.10 with 1; 2.50, 2.60 with 2. It is lowest with 2 heads{chance}"
    )
    assert loss_line(groups(3.0, None, 2.5)) == (
        f"{start}3.00 with 1; missing with 2; 2.50 with 4. It is lowest with 4 heads{chance}"
    )
    assert loss_line(groups(None, 2.5, setting="d_model=8")) == (
        "Validation loss by number of heads (d_model=8), nats per token: missing with 1; 2.50 with 2."
    )


def test_what_seeds_come_to():
    counts = {"a": [3.0], "b": [0.0, 1.0], "c": [0.0, 0.0, 1.0], "d": [0, 0, 0], "e": [0.1, 0.2, 0.4]}
    group = {f"{name}_values": values for name, values in counts.items()}
    group |= {f"{name}_median": median(values) for name, values in counts.items()}
    assert [median_of(group, name) for name in counts] == ["3", "0, 1", "0 (0 to 1)", "0", "0.2 (0.1 to 0.4)"]
    scores = {"s_mean": 0.44, "s_values": [0.39, 0.45, 0.48], "t_mean": 2.628, "t_values": [2.6, 2.6, 2.7]}
    scores |= {"t_ci95": 0.0038, "u_mean": None, "u_ci95": None, "u_values": [None]}
    assert [mean_of(scores, name) for name in "stu"] == ["0.44 (0.39 to 0.48)", "2.628 ± 0.004", "missing"]


# Tables


def test_tables_have_spreads_over_seeds(tmp_path):
    models = [Model(seed=seed, n_heads=2, spare=spare) for seed, spare in enumerate((2, 1, 3))]
    with open_results(write_measurements(tmp_path / "w.duckdb", *models), "invented") as results:

        def shown(query: str) -> str:
            return table_with_spreads(results.rows(query)).replace("\u00a0", " ")

        assert "| 2L2H | L0H0 | 0.500 | 0.550 | 0.250 | 0.400 |" in shown("ablated_heads")
        assert shown("prunable_heads").endswith(
            "| 2L2H | 3 | 4 | 2 (1 to 3) / 3 (2 to 4) | 3 (2 to 4) / 4 (3 to 4) | 1 (0 to 2) / 2 (1 to 3) "
            "| 2 (1 to 3) / 2 (1 to 4) | 0.2 / 2.2 |"
        )
        assert "| 2L2H | 0.010 | 2 of 4 | 2.300 | 2.369 | 2.369 | 2.379 |" in shown("gate_sweeps")
        assert (
            "| 2L2H | iterative | ablation_mean | within 1 % | 3 of 4 | 0.800 | 0.800 | 0.750 | 0.500 | 2.305 | 0.002 |"
            in shown("pruned_models")
        )
        assert "| 2L2H | 3 | 3 of 18 | 0 of 18 | 0.167 | L0H1 and L1H0 | 0.100 |" in shown("redundancy")
        assert "| 2L2H | L0H1 | L1H0 | 0.100 | 0.900 | 0.800 | 0.004 | 0.008 | 0.212 |" in shown("redundant_pairs")
        probed = "| 2L2H | lexical_class | 3 | L1H1 | 0.30 (0.28 to 0.32) | 0.300 | 0.900 |"
        assert f"{probed} 0.550 | 0.600 | 0.500 | R2 | 0.330 |" in shown("probe_summary")
        assert "| part_of_speech | the corpus is not in CoNLL-U | 3 |" in shown("absent_probes")
