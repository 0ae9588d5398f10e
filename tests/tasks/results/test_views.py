from collections.abc import Callable
from functools import partial
from math import sqrt

import duckdb
import numpy as np
import pytest
from empty_warehouse import empty_warehouse
from scipy import stats
from simulated_trajectories import PREFIX_MATCHING, REPEAT_GAIN, kinds_of, logistic, proportional, steps_of, straight

from headstream.tasks.measuring.trained_model import Rows
from headstream.tasks.results.study_results import CHOOSING
from headstream.tasks.results.table_reference import README, README_MARK, tables_in_markdown
from headstream.tasks.results.tables import write_table
from headstream.tasks.results.views import views


@pytest.fixture
def database(tmp_path):
    """An empty warehouse, and a function that fills one of its tables."""
    with empty_warehouse() as connection:

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


def test_views_that_are_not_kept_are_views():
    assert {view.name for view in views()} > CHOOSING


def test_a_column_is_described_where_it_comes_from(database):
    connection, _ = database
    heads, summary = (comments_of(connection, name) for name in ("heads", "head_summary"))
    assert summary["previous_token"] == heads["previous_token"]
    assert summary["label"] == "the head as people write it, like L1H3"
    assert comments_of(connection, "scaling_by_heads")["repeat_gain_nats_sd"] == "standard deviation over seeds"


def test_readme_lists_what_there_is():
    assert README.read_text().partition(README_MARK)[2].strip() == tables_in_markdown().strip(), (
        "run python -m headstream.tasks.results.table_reference"
    )


def test_every_head_has_a_role(database):
    connection, fill = database
    scores = [
        "induction_random_period",
        "induction_copying_logit",
        "previous_token",
        "duplicate_token",
        "bos_attention",
    ]
    expected = {
        (0.2, 0.2, 0.9, 0.9, 0.0): "induction",
        (0.2, -0.2, 0.9, 0.9, 0.0): "anti-induction",
        (0.2, 0.19, 0.4, 0.9, 0.0): "previous token",
        (0.2, -0.19, 0.39, 0.3, 0.0): "duplicate token",
        (0.19, 0.2, 0.39, 0.29, 0.5): "BOS",
        (0.9, None, 0.39, 0.29, 0.49): "other",
        (None, None, None, None, 0.6): "BOS",
        (None, None, None, None, None): None,
    }
    heads = [
        {"model_id": "a", "step": 20, "layer": 1, "head": head, "induction_copying_logit_sem": 0.1}
        | dict(zip(scores, values, strict=True))
        for head, values in enumerate(expected)
    ]
    fill("heads", [{"model_id": "a", "step": 10, "layer": 1, "head": 0, "previous_token": 1.0}, *heads])
    found = connection.execute("SELECT label, role FROM head_summary ORDER BY head").fetchall()
    assert found == [(f"L1H{head}", role) for head, role in enumerate(expected.values())]


def test_heads_that_share_keys_are_told(database):
    connection, fill = database
    own = {"model_id": "own", "n_layers": 1, "heads_per_layer": [2]}
    fill("models", [own, {"model_id": "shared", "n_layers": 2, "heads_per_layer": [6, 4], "n_key_value_heads": 2}])
    heads = [("own", 0, 1), *(("shared", 0, head) for head in range(6)), ("shared", 1, 3)]
    fill("heads", [{"model_id": model, "step": 0, "layer": layer, "head": head} for model, layer, head in heads])
    found = connection.execute("SELECT label, shares_keys_with FROM head_summary ORDER BY model_id, layer, head")
    assert found.fetchall() == [
        ("L0H1", None),
        ("L0H0", ["L0H1", "L0H2"]),
        ("L0H1", ["L0H0", "L0H2"]),
        ("L0H2", ["L0H0", "L0H1"]),
        ("L0H3", ["L0H4", "L0H5"]),
        ("L0H4", ["L0H3", "L0H5"]),
        ("L0H5", ["L0H3", "L0H4"]),
        ("L1H3", ["L1H2"]),
    ]


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


def middle_third(x: np.ndarray, level: np.ndarray, sem: float) -> tuple[float | None, str]:
    """By what factor tokens grow around it, and what that says of the rise; `x` lacks the first checkpoint."""
    change, error = level[-1] - level[0], stats.norm.ppf(0.95) * sem
    low, high = level[0] + change / 3 - error, level[-1] - change / 3 + error
    above = min((i for i in range(len(level)) if level[i] >= high), default=0)
    below = max((i for i in range(1, above) if level[i] <= low), default=None)
    if low <= level[0] or below is None:
        return None, "unresolved"
    begins = np.interp(low, level[below : below + 2], x[below - 1 : below + 1])
    ends = np.interp(high, level[above - 1 : above + 1], x[above - 2 : above])
    factor, surely = np.exp(ends - begins), np.log(2.3)
    if x[above - 1] - x[below - 1] < surely:
        return factor, "abrupt"
    if x[above - 2] - x[below] >= surely:
        return factor, "gradual"
    if max(x[below] - x[below - 1], x[above - 1] - x[above - 2]) > np.log(1.6):
        return factor, "unresolved"
    return factor, "abrupt" if factor < 2.3 else "gradual"


def phase_change(
    tokens: np.ndarray, values: np.ndarray, sems: np.ndarray, learning: np.ndarray, smallest: float
) -> dict:
    """What phase_changes must say of a trajectory; the first checkpoint has seen no tokens."""
    level, learning = smooth(values), smooth(learning)
    change = level[-1] - level[0]
    flat = change < smallest or (change > 0 and stats.norm.sf(change / np.hypot(sems[0], sems[-1])) > 0.05)
    found = {"kind": "none" if flat else None, "before": level[0], "after": level[-1]}
    x, n = np.log(tokens[1:]), len(tokens) - 1
    if n < 2:
        return found if flat else found | {"kind": "unresolved"}
    slopes = np.diff(level[1:]) / np.diff(x)
    steepest = 2 + int(slopes.argmax())  # slopes[i - 2] leads to checkpoint i
    slow = slopes < slopes.max() / 4
    start = max((i for i in range(2, steepest) if slow[i - 2]), default=1)
    end = min((i for i in range(steepest, n) if slow[i - 1]), default=n)
    found["tokens_factor"], kind = middle_third(x, level, np.hypot(sems[0], sems[-1]))
    if not flat:
        found["kind"] = kind
    if found["kind"] == "abrupt":
        found |= {"tokens": tokens[steepest], "window_start_tokens": tokens[start], "window_end_tokens": tokens[end]}
        found["has_ended"] = bool(end < n)
        if (learnt := learning[-1] - learning[0]) < 0:
            found["in_context_learning_share"] = min(1, max(0, (learning[end] - learning[start]) / learnt))
    return found


def test_phase_changes_are_those_of_the_definition(database):
    connection, fill = database
    rng = np.random.default_rng(0)
    evaluations, heads, expected = [], [], {}
    for model in (f"m{i:02}" for i in range(60)):
        n = int(rng.integers(1, 12))
        steps = np.array([0, *np.cumsum(rng.integers(1, 50, size=n - 1))])
        jump = 0.3 * rng.integers(2) * (np.arange(n) > n / 2)
        matching, other = rng.normal(0.02, 0.03, size=(2, n)).cumsum(axis=1) + jump
        gain, learning = rng.normal(0.1, 0.2, size=n).cumsum() + 3 * jump, rng.normal(-0.1, 0.2, size=n).cumsum()
        sem, gain_sem = rng.uniform(0.01, 0.03, size=n), rng.uniform(0.03, 0.1, size=n)
        best = 0 if matching[-1] >= other[-1] else 1
        for score, values, sems, smallest in (
            ("prefix_matching", (matching, other)[best], sem, 0.1),
            ("repeat_gain_nats", gain, gain_sem, 0.2),
        ):
            head = best if score == "prefix_matching" else None
            expected[model, score] = {"head": head} | phase_change(steps * 64, values, sems, learning, smallest)
        for j, step in enumerate(steps):
            common = {"model_id": model, "step": step}
            gains = {"repeat_gain_nats": gain[j], "repeat_gain_sem_nats": gain_sem[j]}
            evaluations.append({**common, "tokens": step * 64, **gains, "in_context_learning_nats": learning[j]})
            heads += [
                {**common, "layer": 1, "head": h, "prefix_matching": v[j], "prefix_matching_sem": sem[j]}
                for h, v in enumerate((matching, other))
            ]
    fill("evaluations", evaluations)
    fill("heads", heads)
    fill("models", [{"model_id": model} for model in {model for model, _ in expected}])
    names = ["head", "kind", "before", "after", "tokens", "window_start_tokens", "window_end_tokens"]
    names += ["has_ended", "in_context_learning_share"]
    found = connection.execute(
        f"SELECT model_id, score, {', '.join(names)}, tokens_factor FROM phase_changes"
    ).fetchall()
    assert len(found) == len(expected) == 120
    assert {kind for _, _, _, kind, *_ in found} == {"abrupt", "gradual", "unresolved", "none"}
    for model, score, *row in found:
        right = expected[model, score]
        factor = right.pop("tokens_factor", None)
        assert row.pop() == (factor and pytest.approx(factor, rel=1e-3))  # 1.645 has four digits
        assert row == [None if (v := right.get(name)) is None else pytest.approx(v) for name in names]


@pytest.mark.parametrize("z", [0.01, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0])
def test_normal_tails_are_hardly_above_the_true_ones(database, z):
    (found,) = database[0].execute(f"SELECT normal_tail({z})").fetchone()
    assert stats.norm.sf(z) < found < stats.norm.sf(z) * (1.13 if z < 2 else 1.006)


def test_an_early_bump_is_no_part_of_a_phase_change(database):
    connection, fill = database
    fill("models", [{"model_id": "a"}])
    gain = [0.0, 0.0, 0.2, 0.2, 0.25, 0.2, 0.6, 1.0, 1.0]
    tokens = [0, *(32 * 3**i // 2**i for i in range(len(gain) - 1))]
    fill(
        "evaluations",
        [
            {"model_id": "a", "step": n, "tokens": n, "repeat_gain_nats": g, "repeat_gain_sem_nats": 0.01}
            for n, g in zip(tokens, gain, strict=True)
        ],
    )
    found = connection.execute(
        "SELECT window_start_tokens, tokens, window_end_tokens FROM phase_changes WHERE kind = 'abrupt'"
    ).fetchall()
    # smoothed: 0, 0, 0.2, 0.2, 0.2, 0.25, 0.6, 1, 1; the last rises are 0.05, 0.35, 0.4, 0
    assert found == [(tokens[5], tokens[7], tokens[7])]


def test_a_phase_change_on_paper(database):
    connection, fill = database
    fill("models", [{"model_id": "a"}, {"model_id": "b"}])
    gain = [0.0, 0.0, 0.05, 0.1, 1.0, 1.0, 1.0]
    learning = [0.0, 0.0, 0.0, 0.0, -0.3, -0.4, -0.4]  # smoothed: 0, 0, 0, 0, -0.3, -0.4, -0.4
    rows = [
        {"model_id": "a", "step": step, "tokens": step, "repeat_gain_nats": g, "in_context_learning_nats": score}
        for step, g, score in zip([0, 1, 2, 4, 8, 16, 32], gain, learning, strict=True)
    ]
    fill("evaluations", rows)
    query = (
        "SELECT model_id, score, kind, step, before, after, change, window_start_tokens, window_end_tokens,"
        " in_context_learning_share FROM phase_changes ORDER BY ALL"
    )
    missing = [(None,) * 8] * 3
    of_b = [("a", "prefix_matching"), ("b", "prefix_matching"), ("b", "repeat_gain_nats")]
    unknown = [(*name, *values) for name, values in zip(of_b, missing, strict=True)]
    without_errors = ("a", "repeat_gain_nats", None, None, 0.0, 1.0, 1.0, None, None, None)
    assert connection.execute(query).fetchall() == [unknown[0], without_errors, *unknown[1:]]
    # From 0.33 - 0.23 to 0.67 + 0.23, all of it between two checkpoints that are a factor of 2 apart.
    connection.execute("UPDATE evaluations SET repeat_gain_sem_nats = 0.1")
    found = ("a", "repeat_gain_nats", "abrupt", 8, 0.0, 1.0, 1.0, 4, 8, pytest.approx(0.75))
    assert connection.execute(query).fetchall() == [unknown[0], found, *unknown[1:]]
    # Measured by fewer sequences, it might have begun a checkpoint earlier or anywhere, and at last it might be chance.
    for sem, kind in ((0.12, "unresolved"), (0.3, "unresolved"), (0.5, "none")):
        connection.execute("UPDATE evaluations SET repeat_gain_sem_nats = ?", [sem])
        assert connection.execute(query).fetchall()[1][2] == kind


def test_a_straight_rise_is_gradual(database):
    connection, fill = database
    fill("models", [{"model_id": "a"}])
    gains = {"repeat_gain_sem_nats": 0.01}
    rows = [{"model_id": "a", "step": 2**i, "tokens": 2**i, "repeat_gain_nats": 0.3 * i, **gains} for i in range(7)]
    fill("evaluations", rows)
    query = "SELECT kind, tokens, tokens_factor FROM phase_changes WHERE kind IS NOT NULL"
    # From 0.6 to 1.2, two doublings, and 1.645 * 0.01 * sqrt(2) / 0.3 of one more at each end.
    assert connection.execute(query).fetchall() == [("gradual", None, pytest.approx(2 ** (2 + 2 * 0.07755), rel=1e-4))]


def test_a_rise_that_goes_on_has_not_ended(database):
    connection, fill = database
    fill("models", [{"model_id": "a"}])
    gains = [0.0, 0.0, 0.0, 0.3, 1.0]
    rows = [
        {"model_id": "a", "step": i, "tokens": 100 + 50 * i, "repeat_gain_nats": g, "repeat_gain_sem_nats": 0.01}
        for i, g in enumerate(gains)
    ]
    fill("evaluations", rows)
    query = "SELECT kind, window_end_tokens, has_ended FROM phase_changes WHERE kind IS NOT NULL"
    assert connection.execute(query).fetchall() == [("abrupt", 300, False)]


# How often phase_changes errs on trajectories of which is known what they are, and how often it finds a change.

N_TRAJECTORIES = 400
BY_SCORE = pytest.mark.parametrize("score", [PREFIX_MATCHING, REPEAT_GAIN], ids=lambda score: score.name)
BY_CHECKPOINTS = pytest.mark.parametrize("n_checkpoints", [16, 6])


def kinds(score, n_checkpoints, *levels, shared=0.0, skewed=False, n=N_TRAJECTORIES):
    """For each of these levels, the kinds of n trajectories that are measured of it."""
    steps, measured = steps_of(n_checkpoints), []
    for level in levels:
        rng = np.random.default_rng(0)
        measured += [score.measured(level(steps), shared, rng, skewed) for _ in range(n)]
    found = kinds_of(score, steps, measured)
    return [found[i : i + n] for i in range(0, len(found), n)]


@BY_SCORE
@BY_CHECKPOINTS
@pytest.mark.parametrize(("shared", "skewed"), [(0.0, False), (0.0, True), (0.7, False)])
def test_flat_and_steady_trajectories_seldom_count(score, n_checkpoints, shared, skewed):
    levels = [partial(straight, rise=0.0), partial(straight, rise=score.rise), partial(proportional, rise=score.rise)]
    flat, *steady = kinds(score, n_checkpoints, *levels, shared=shared, skewed=skewed)
    assert flat.count("none") >= 0.92 * N_TRAJECTORIES
    assert flat.count("abrupt") <= 0.02 * N_TRAJECTORIES
    for rising in steady:
        assert rising.count("abrupt") <= 0.05 * N_TRAJECTORIES
        if n_checkpoints > 6:
            assert rising.count("gradual") >= 0.95 * N_TRAJECTORIES


@BY_SCORE
@BY_CHECKPOINTS
@pytest.mark.parametrize("middle", [150, 420, 900])
def test_rises_as_large_as_those_of_real_models_are_told_if_checkpoints_are_enough(score, n_checkpoints, middle):
    """80 % of the rise falls within a factor of 3 in tokens."""
    (found,) = kinds(score, n_checkpoints, partial(logistic, rise=score.rise, middle=middle, factor=3.0), n=100)
    assert found.count("abrupt" if n_checkpoints > 6 else "unresolved") >= 90


def test_a_head_of_a_circuit_is_told_in_a_sentence_that_its_numbers_support(database):
    connection, fill = database
    about = {"model_id": "m", "prompts": "p"}
    fill("models", [{"model_id": "m", "n_layers": 2, "n_heads": 4, "n_key_value_heads": 2}])
    fill("prompt_scores", [about | {"step": 1, "difference_nats": 2.0}])
    edges = [("L0H1", "L1G1", "K", 0.5), ("embedding", "L1H3", "Q", 0.1), ("L0H0", "L1H3", "Q", 0.004)]
    columns = ("writer", "reader", "port", "share")
    fill("prompt_edges", [about | dict(zip(columns, edge, strict=True)) | {"in_circuit": True} for edge in edges])
    looks = {"looks_from": "the last token", "looks_at": "the answer", "looks_share": 0.9, "looks_attention": 0.7}
    head = about | {"node": "L1H3", "share": 0.5, "restored_share": 0.4, **looks}
    for node, change in (
        ("L1H3", {"direct_nats": 1.2, "direct_sem_nats": 0.1}),
        ("L1H2", {"direct_nats": 1.2, "direct_sem_nats": 0.9, "looks_share": 0.4}),
        ("L0MLP", {"share": -0.2, "restored_share": -0.1} | dict.fromkeys(looks)),
    ):
        fill("node_effects", [head | {"node": node} | change])
    told = dict(connection.execute("SELECT node, sentence FROM circuit_heads").fetchall())
    lost = "0.50 of the difference is lost, and alone it puts back 0.40."
    looking = "In 90 % of pairs it looks from the last token at the answer, with 0.70 of its attention."
    reads = "It reads L0H1 by its group's keys (0.50)"
    direct = "It writes 1.20 nats on the log-odds directly."
    assert told == {
        "L0MLP": "L0MLP works against it: without it the difference is 0.20 larger, and alone it takes away 0.10.",
        "L1H3": f"Without L1H3, {lost} {looking} {direct} {reads}, embedding by its queries (0.10).",
        "L1H2": f"Without L1H2, {lost} It looks from and at different places in different pairs. {reads}.",
    }
