from collections.abc import Callable
from math import sqrt

import duckdb
import numpy as np
import pytest

from tasks.measuring.trained_model import Rows
from tasks.results.table_reference import README, README_MARK, tables_in_markdown
from tasks.results.tables import write_table
from tasks.results.views import create_tables_and_views, views


@pytest.fixture
def database(tmp_path):
    """An empty warehouse in memory, and a function that fills one of its tables."""
    with duckdb.connect() as connection:
        create_tables_and_views(connection)

        def fill(table: str, rows: Rows) -> None:
            connection.execute(
                f"INSERT INTO {table} BY NAME FROM read_parquet(?)", [str(write_table(tmp_path, table, rows))]
            )

        yield connection, fill


def comments_of(connection: duckdb.DuckDBPyConnection, name: str) -> dict[str, str | None]:
    query = "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = ?"
    return dict(connection.execute(query, [name]).fetchall())


def test_views_describe_every_column(database):
    connection, _ = database
    for view in views():
        assert connection.execute(f"FROM {view.name}").fetchall() == []
        assert all(comments_of(connection, view.name).values()), view.name


def test_a_column_is_described_where_it_comes_from(database):
    connection, _ = database
    heads, summary = (comments_of(connection, name) for name in ("heads", "head_summary"))
    assert summary["previous_token"] == heads["previous_token"]
    assert summary["label"] == "the head as people write it, like L1H3"
    assert comments_of(connection, "scaling_by_heads")["repeat_gain_nats_sd"] == "standard deviation over seeds"


def test_readme_lists_what_there_is():
    assert README.read_text().partition(README_MARK)[2].strip() == tables_in_markdown().strip(), (
        "run python -m tasks.results.table_reference"
    )


def test_every_head_has_a_role(database):
    connection, fill = database
    scores = ["induction_random_period", "previous_token", "duplicate_token", "bos_attention"]
    expected = {
        (0.2, 0.9, 0.9, 0.0): "induction",
        (0.19, 0.4, 0.9, 0.0): "previous token",
        (0.19, 0.39, 0.3, 0.0): "duplicate token",
        (0.19, 0.39, 0.29, 0.5): "BOS",
        (0.19, 0.39, 0.29, 0.49): "other",
        (None, None, None, 0.6): "BOS",
        (None, None, None, None): None,
    }
    heads = [
        {"model_id": "a", "step": 20, "layer": 1, "head": head, **dict(zip(scores, values, strict=True))}
        for head, values in enumerate(expected)
    ]
    fill("heads", [{"model_id": "a", "step": 10, "layer": 1, "head": 0, "previous_token": 1.0}, *heads])
    found = connection.execute("SELECT label, role FROM head_summary ORDER BY head").fetchall()
    assert found == [(f"L1H{head}", role) for head, role in enumerate(expected.values())]


def fill_family(fill: Callable[[str, Rows], None]) -> None:
    """Two layers at seeds 0, 1, 2, one layer at seed 0, none at seed 0, in `quick`; the first is in `wide` too."""
    induction = {"2L-0": 0.2, "2L-1": 0.3, "2L-2": 0.4, "1L-0": 0.01}
    models = [
        {
            "model_id": name,
            "name": name[:2],
            "n_layers": int(name[0]),
            "seed": int(name[-1]),
            "n_heads": 2,
            "d_model": 8,
        }
        | {"total_heads": 2 * int(name[0]), "heads_per_layer": [2] * int(name[0])}
        for name in [*induction, "0L-0"]
    ]
    fill("models", models)
    cell = "n_layers={n_layers} seed={seed}".format_map
    members = [{"study": "quick", "model_id": model["model_id"], "cell": cell(model)} for model in models]
    wide = {"study": "wide", "model_id": "2L-0", "cell": "n_layers=2 positions=rotary n_heads=2 seed=0"}
    failed = {"study": "quick", "model_id": "3L-0", "cell": "n_layers=3 seed=0", "status": "failed"}
    fill("study_models", [*members, wide, failed])
    fill(
        "heads",
        [
            {"model_id": name, "step": step, "layer": int(name[0]) - 1, "head": head, "previous_token": head / 2}
            | {"induction_random_period": score * head if step else 0.9}
            for name, score in induction.items()
            for step in (0, 10)
            for head in (0, 1)
        ],
    )
    spread = {"2L-1": 0.1, "2L-2": -0.1}
    losses = [
        {"model_id": name, "validation_loss_nats": 4.0 - int(name[0]) + spread.get(name, 0.0)}
        for name in (model["model_id"] for model in models)
    ]
    fill("evaluations", [{**loss, "step": 10} for loss in losses] + [{"model_id": "2L-0", "step": 0}])


def test_model_summary_is_about_the_last_checkpoint(database):
    connection, fill = database
    fill_family(fill)
    found = connection.execute(
        "SELECT model_id, studies, validation_loss_nats, best_induction_random_period, best_induction_head,"
        " best_previous_token, best_previous_token_layer_0 FROM model_summary ORDER BY model_id"
    ).fetchall()
    assert found[:3] == [
        ("0L-0", ["quick"], 4.0, None, None, None, None),
        ("1L-0", ["quick"], 3.0, 0.01, "L0H1", 0.5, 0.5),
        ("2L-0", ["quick", "wide"], 2.0, 0.2, "L1H1", 0.5, None),
    ]
    assert len(found) == 5


def test_learning_curves_have_the_best_head_of_each_checkpoint(database):
    connection, fill = database
    fill_family(fill)
    found = connection.execute(
        "SELECT step, validation_loss_nats, best_induction_random_period FROM learning_curves WHERE model_id = '2L-0'"
    ).fetchall()
    assert found == [(0, None, 0.9), (10, 2.0, 0.2)]


def test_induction_by_depth_has_error_bars_over_seeds(database):
    connection, fill = database
    fill_family(fill)
    found = connection.execute(
        "SELECT study, setting, n_layers, n_models, induction, induction_values, validation_loss_nats,"
        " validation_loss_ci95 FROM induction_by_depth"
    ).fetchall()
    # losses 1.9, 2.0, 2.1: sd 0.1, t with 2 degrees of freedom 4.3027
    half_width = 4.3027 * 0.1 / sqrt(3)
    assert found == [
        ("quick", "", 0, 1, None, [None], 4.0, None),
        ("quick", "", 1, 1, 0.01, [0.01], 3.0, None),
        ("quick", "", 2, 3, pytest.approx(0.3), [0.2, 0.3, 0.4], pytest.approx(2.0), pytest.approx(half_width)),
        ("wide", "positions=rotary n_heads=2", 2, 1, 0.2, [0.2], 2.0, None),
    ]


def test_scaling_by_heads_has_a_row_a_shape(database):
    connection, fill = database
    fill_family(fill)
    found = connection.execute(
        "SELECT study, setting, d_model, n_layers, n_heads, heads_per_layer, total_heads, n_models,"
        " validation_loss_nats_mean, validation_loss_nats_sd, best_previous_token_values FROM scaling_by_heads"
    ).fetchall()
    assert found == [
        ("quick", "", 8, 0, 2, [], 0, 1, 4.0, None, [None]),
        ("quick", "", 8, 1, 2, [2], 2, 1, 3.0, None, [0.5]),
        ("quick", "", 8, 2, 2, [2, 2], 4, 3, pytest.approx(2.0), pytest.approx(0.1), [0.5, 0.5, 0.5]),
        ("wide", "positions=rotary", 8, 2, 2, [2, 2], 4, 1, 2.0, None, [0.5]),
    ]


def test_settings_leave_lists_of_head_counts_out(database):
    connection, fill = database
    fill("models", [{"model_id": "a", "n_layers": 2, "heads_per_layer": [4, 2]}])
    fill("study_models", [{"study": "s", "model_id": "a", "cell": "n_heads=[4, 2] d_head=8 seed=0"}])
    assert connection.execute("SELECT setting, heads_per_layer FROM scaling_by_heads").fetchall() == [
        ("d_head=8", [4, 2])
    ]


def smooth(values: np.ndarray) -> np.ndarray:
    inner = [np.median(values[i - 1 : i + 2]) for i in range(1, len(values) - 1)]
    return np.array([values[0], *inner, values[-1]]) if len(values) > 1 else values


def phase_change(tokens: np.ndarray, values: np.ndarray, learning: np.ndarray, smallest: float) -> tuple:
    """occurred, index of the steepest change, before, after, window's tokens, share of the learning inside."""
    level, learning = smooth(values), smooth(learning)
    change = level[-1] - level[0]
    if change < smallest:
        return (False, None, level[0], level[-1], None, None, None)
    slopes = np.diff(level) / np.diff(np.log1p(tokens))
    steepest = 1 + int(slopes.argmax())  # slopes[i - 1] leads to checkpoint i
    slow = slopes < slopes.max() / 4
    start = max((i for i in range(1, steepest) if slow[i - 1]), default=0)
    end = min((i for i in range(steepest, len(slopes)) if slow[i]), default=len(slopes))
    learnt = learning[-1] - learning[0]
    share = (learning[end] - learning[start]) / learnt if learnt < 0 else None
    return (True, steepest, level[0], level[-1], tokens[start], tokens[end], share)


def test_phase_changes_are_those_of_the_definition(database):
    connection, fill = database
    rng = np.random.default_rng(0)
    evaluations, heads, expected = [], [], {}
    for model in (f"m{i:02}" for i in range(40)):
        n = int(rng.integers(1, 10))
        steps = np.array([0, *np.cumsum(rng.integers(1, 50, size=n - 1))])
        matching, other = rng.normal(0.05, 0.1, size=(2, n)).cumsum(axis=1)
        gain, learning = rng.normal(0.1, 0.2, size=n).cumsum(), rng.normal(-0.1, 0.2, size=n).cumsum()
        best = 0 if matching[-1] >= other[-1] else 1
        for score, values, smallest in (
            ("prefix_matching", (matching, other)[best], 0.1),
            ("repeat_gain_nats", gain, 0.2),
        ):
            occurred, i, *levels, start, end, share = phase_change(steps * 64, values, learning, smallest)
            steepest = (None, None) if i is None else (steps[i], steps[i] * 64)
            head = best if score == "prefix_matching" else None
            expected[model, score] = (head, occurred, *steepest, *levels, start, end, share)
        for j, step in enumerate(steps):
            common = {"model_id": model, "step": step}
            evaluations.append(
                {**common, "tokens": step * 64, "repeat_gain_nats": gain[j], "in_context_learning_nats": learning[j]}
            )
            heads += [
                {**common, "layer": 1, "head": h, "prefix_matching": v[j]} for h, v in enumerate((matching, other))
            ]
    fill("evaluations", evaluations)
    fill("heads", heads)
    fill("models", [{"model_id": model} for model in {model for model, _ in expected}])
    found = connection.execute(
        "SELECT model_id, score, head, occurred, step, tokens, before, after, window_start_tokens, window_end_tokens,"
        " in_context_learning_share FROM phase_changes"
    ).fetchall()
    assert len(found) == len(expected) == 80
    assert {occurred for _, _, _, occurred, *_ in found} == {True, False}
    for model, score, *row in found:
        assert row == [None if v is None else pytest.approx(v, abs=1e-12) for v in expected[model, score]], (
            model,
            score,
        )


def test_an_early_bump_is_no_part_of_a_phase_change(database):
    connection, fill = database
    fill("models", [{"model_id": "a"}])
    gain = [0.0, 0.0, 0.2, 0.2, 0.25, 0.2, 0.6, 1.0, 1.0]
    tokens = [2**i - 1 for i in range(len(gain))]
    fill(
        "evaluations",
        [{"model_id": "a", "step": n, "tokens": n, "repeat_gain_nats": g} for n, g in zip(tokens, gain, strict=True)],
    )
    found = connection.execute(
        "SELECT window_start_tokens, tokens, window_end_tokens FROM phase_changes WHERE occurred"
    ).fetchall()
    # smoothed: 0, 0, 0.2, 0.2, 0.2, 0.25, 0.6, 1, 1; the last rises are 0.05, 0.35, 0.4, 0
    assert found == [(31, 127, 127)]


def test_a_phase_change_on_paper(database):
    connection, fill = database
    fill("models", [{"model_id": "a"}, {"model_id": "b"}])
    gain = [0.0, 0.0, 9.0, 0.1, 1.0, 1.0, 1.0]  # the 9 is an outlier, smoothed away: 0, 0, 0.1, 1, 1, 1, 1
    learning = [0.0, 0.0, 0.0, 0.0, -0.3, -0.4, -0.4]  # smoothed: 0, 0, 0, 0, -0.3, -0.4, -0.4
    fill(
        "evaluations",
        [
            {"model_id": "a", "step": step, "tokens": step, "repeat_gain_nats": g, "in_context_learning_nats": score}
            for step, g, score in zip([0, 1, 3, 7, 15, 31, 63], gain, learning, strict=True)
        ],
    )
    found = connection.execute(
        "SELECT model_id, score, occurred, step, before, after, change, window_start_tokens, window_end_tokens,"
        " in_context_learning_share FROM phase_changes ORDER BY ALL"
    ).fetchall()
    assert found == [
        ("a", "prefix_matching", None, None, None, None, None, None, None, None),
        ("a", "repeat_gain_nats", True, 7, 0.0, 1.0, 1.0, 3, 7, 0.0),
        ("b", "prefix_matching", None, None, None, None, None, None, None, None),
        ("b", "repeat_gain_nats", None, None, None, None, None, None, None, None),
    ]
