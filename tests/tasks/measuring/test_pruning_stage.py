"""The stage that prunes a model: its tables, the smaller models that it keeps, and that it takes any model."""

import doctest
from collections import defaultdict

import pyarrow.parquet as pq
import pytest
import torch
from planted import blank_model, dimensions, plant_fixed_offset
from tiny import tiny_tokens

from headstream.models.architecture import Architecture
from headstream.models.heads.head import heads_of, mask_without
from headstream.models.heads.references import mean_z
from headstream.models.heads.removal import remove_heads
from headstream.models.losses import sequence_losses
from headstream.models.nodes import Head
from headstream.models.parameters import count_parameters
from headstream.models.transformer import Transformer
from headstream.tasks.errors import UserError
from headstream.tasks.measuring import pruned_models, trained_model
from headstream.tasks.measuring.pruned_models import choose
from headstream.tasks.measuring.pruning import Gates, half_open, measure_pruning
from headstream.tasks.measuring.pruning_curves import Point, Subject, measure_curves, relative_increases
from headstream.tasks.measuring.trained_model import TrainedModel
from headstream.tasks.results.tables import table_schema
from headstream.tasks.study.analyses.pruning_config import PruningConfig
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.text.windows import evaluation_text, reference_text
from headstream.tasks.training.checkpoints import load_model, save_checkpoint, write_model_card

CONFIG = PruningConfig(
    windows=5,
    reference_windows=4,
    random_orders=5,
    batch_size=2,
    retrain_steps=2,
    gate_lambdas=(0.01, 1.0),
    gate_steps=5,
    repeats=1,
)
TABLES = ["gates", "gate_sweeps", "importance", "pruning", "pruned_models"]


@pytest.fixture(scope="module")
def tokens():
    return Tokens.open(tiny_tokens())


def random_model(tokens, seed=0, scale=0.4, **options):
    """Weights so large that heads matter."""
    architecture = Architecture(**{"n_layers": 2, "n_heads": 2, "d_model": 10, "n_ctx": 16, **options})
    model = Transformer(architecture, tokens.vocabulary)
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.data.normal_(0, scale, generator=generator)
    return model.requires_grad_(False)


def save(folder, model):
    save_checkpoint(folder, model, 3)
    write_model_card(folder, model, 100)


def measure(folder, model, config=CONFIG, on_progress=lambda fraction: None):
    save(folder, model)
    return measure_pruning(config, TrainedModel("m", folder, tiny_tokens(), folder, on_progress))


def rows_of(folder, name):
    return pq.read_table(folder / f"{name}.parquet").to_pylist()


def curves_of(folder):
    """Rows of each curve, by procedure, order and draw."""
    curves = defaultdict(list)
    for row in rows_of(folder, "pruning"):
        curves[row["procedure"], row["order_method"], row["draw"]].append(row)
    return curves


@pytest.fixture(scope="module")
def measured(tmp_path_factory, tokens):
    folder, heard = tmp_path_factory.mktemp("pruning"), []
    model = random_model(tokens)
    measure(folder, model, on_progress=heard.append)
    return folder, model, heard


def test_every_table_has_every_column(measured):
    folder, _, heard = measured
    missing = {"pruning": {"layer", "head"}, "pruned_models": {"logit_difference"}}
    for name in TABLES:
        table = pq.read_table(folder / f"{name}.parquet")
        assert table.schema.names == table_schema(name).names
        assert set(table["model_id"].to_pylist()) == {"m"}
        assert {column for column in table.schema.names if table[column].null_count} <= missing.get(name, set())
    assert heard == sorted(heard)
    assert heard[-1] == 0.9
    kept = {path.parent.parent.relative_to(folder).as_posix() for path in folder.glob("pruned/*/checkpoints/*")}
    assert {row["checkpoint"] for row in rows_of(folder, "pruned_models")} == kept


def test_curves_go_from_no_head_to_the_last(measured):
    folder, model, _ = measured
    curves = curves_of(folder)
    for (procedure, _, _), rows in curves.items():
        assert rows[0]["n_pruned"] == rows[0]["loss_effect_nats"] == rows[0]["ci_low_nats"] == 0
        if procedure == "gates":
            assert all(row["layer"] is None for row in rows)
            continue
        assert [row["n_pruned"] for row in rows] == [0, 1, 2, 3, 4]
        assert rows[-1]["fraction_pruned"] == 1
        assert sorted((row["layer"], row["head"]) for row in rows[1:]) == heads_of(model)
    assert {procedure for procedure, _, _ in curves} == {
        "one_shot",
        "iterative",
        "iterative_retrain",
        "gates",
        "random",
    }
    assert sorted(draw for procedure, _, draw in curves if procedure == "random") == [0, 1, 2, 3, 4]
    assert ("one_shot", "gate", 0) in curves


def test_points_are_what_a_masked_model_loses_and_a_smaller_one_weighs(measured, tokens):
    folder, model, _ = measured
    text, fill = evaluation_text(tokens, 16, 5).sequences, mean_z(model, reference_text(tokens, 16, 4).sequences)
    intact = sequence_losses(model, text)
    for (procedure, _, _), rows in curves_of(folder).items():
        pruned = frozenset()
        for row in rows[1:] if procedure in ("one_shot", "iterative", "random") else []:
            pruned |= {Head(row["layer"], row["head"])}
            mask = mask_without(model, pruned)
            losses = sequence_losses(model, text, mask, fill)
            effect = (losses - intact).mean().item()
            assert row["loss_nats"] == pytest.approx(losses.mean().item(), abs=1e-6)
            assert row["loss_effect_nats"] == pytest.approx(effect, abs=1e-6)
            assert row["relative_increase"] == pytest.approx(effect / intact.mean().item(), abs=1e-6)
            assert row["ci_low_nats"] <= row["loss_effect_nats"] <= row["ci_high_nats"]
            assert row["parameters"] == count_parameters(remove_heads(model, mask, fill))


def test_smaller_models_are_on_disk_as_their_rows_say(measured, tokens):
    folder, model, _ = measured
    text, by_curve = evaluation_text(tokens, 16, 5).sequences, curves_of(folder)
    rows = rows_of(folder, "pruned_models")
    assert {"half"} <= {row["chosen_as"] for row in rows}
    for row in rows:
        smaller = load_model(folder / row["checkpoint"], 0)
        assert row["parameters"] == count_parameters(smaller)
        assert row["intact_parameters"] == count_parameters(model)
        assert row["heads_per_layer"] == list(smaller.architecture.heads_per_layer)
        assert sum(row["heads_per_layer"]) == 4 - row["n_pruned"]
        assert row["loss_nats"] == pytest.approx(sequence_losses(smaller, text).mean().item(), abs=1e-6)
        (point,) = (
            point
            for point in by_curve[row["procedure"], row["order_method"], 0]
            if point["n_pruned"] == row["n_pruned"]
        )
        assert row["loss_nats"] == pytest.approx(point["loss_nats"], abs=1e-5)
        assert (row["logit_difference"] is None) == (row["procedure"] == "iterative_retrain")
        assert row["logit_difference"] is None or row["logit_difference"] < 1e-5
        assert row["seconds_batch_1"] > 0


def test_retrained_models_have_other_weights(measured):
    folder, model, _ = measured
    checkpoints = {row["procedure"]: row["checkpoint"] for row in rows_of(folder, "pruned_models")}
    trained = load_model(folder / checkpoints["iterative_retrain"], 0)
    assert not torch.equal(trained.W_E, model.W_E)
    assert torch.equal(load_model(folder / checkpoints["iterative"], 0).W_E, model.W_E)


def test_gates_are_rated_folded_and_binarised(measured, tokens):
    folder, model, _ = measured
    text, gates = evaluation_text(tokens, 16, 5).sequences, defaultdict(lambda: torch.empty(2, 2))
    for row in rows_of(folder, "gates"):
        gates[row["penalty_nats"]][row["layer"], row["head"]] = row["gate"]
    for row in rows_of(folder, "gate_sweeps"):
        own = gates[row["penalty_nats"]]
        assert row["n_open"] == (own > 0).sum()
        assert row["gated_loss_nats"] == pytest.approx(sequence_losses(model, text, list(own)).mean().item(), abs=1e-5)
        assert row["folded_loss_nats"] == pytest.approx(row["gated_loss_nats"], abs=1e-5)
        binarised = sequence_losses(model, text, list((own > 0).float())).mean().item()
        assert row["binarised_loss_nats"] == pytest.approx(binarised, abs=1e-5)
        assert row["intact_loss_nats"] == pytest.approx(sequence_losses(model, text).mean().item(), abs=1e-6)
    (order,) = (rows for key, rows in curves_of(folder).items() if key[:2] == ("one_shot", "gate"))
    ranks = {(row["layer"], row["head"]): row["rank"] for row in rows_of(folder, "importance")}
    assert [ranks[row["layer"], row["head"]] for row in order[1:]] == [3, 2, 1, 0]


def test_the_same_seed_measures_the_same_and_another_draws_other_orders(measured, tmp_path, tokens):
    folder, model, _ = measured
    again, other = tmp_path / "again", tmp_path / "other"
    again.mkdir()
    other.mkdir()
    measure(again, model)
    for name in TABLES[:-1]:
        assert (again / f"{name}.parquet").read_bytes() == (folder / f"{name}.parquet").read_bytes()
    measure(other, model, CONFIG.model_copy(update={"seed": 1}))

    def orders(where):
        curves = curves_of(where).items()
        return [[(row["layer"], row["head"]) for row in rows] for key, rows in curves if key[0] == "random"]

    assert len({tuple(order) for order in orders(folder)}) > 1
    assert orders(other) != orders(folder)


def bigram_head_model(tokens):
    """One layer: L0H1 predicts by the text's bigrams, L0H0 has nothing to write."""
    model, n = blank_model((2,), tokens.vocabulary, n_ctx=16), tokens.vocabulary
    text = torch.from_numpy(tokens.train.read(0, len(tokens.train)).astype(int))
    counts = torch.bincount(text[:-1] * n + text[1:], minlength=n * n).reshape(n, n) + 0.1
    model.W_U[dimensions(model, "next_token")] = (counts / counts.sum(1, keepdim=True)).log()
    plant_fixed_offset(model, layer=0, head=1, offset=0)
    model.layers[0].attention.W_O[0] = 1.0
    return model


def test_an_idle_head_goes_first_at_no_cost(tmp_path, tokens):
    measure(tmp_path, bigram_head_model(tokens))
    for procedure in ("one_shot", "iterative"):
        _, idle, signal = curves_of(tmp_path)[procedure, "ablation_mean", 0]
        assert (idle["layer"], idle["head"]) == (0, 0)
        assert idle["loss_effect_nats"] == pytest.approx(0, abs=1e-5)
        assert signal["loss_effect_nats"] > 0.5
    chosen = {row["chosen_as"]: row["n_pruned"] for row in rows_of(tmp_path, "pruned_models")}
    assert chosen["within 5 %"] == 1


@pytest.mark.parametrize(
    "options",
    [
        {"n_layers": 1, "n_heads": 1},
        {"n_layers": 2, "n_heads": (0, 2), "d_head": 5, "output_biases": True},
        {"normalization": "layernorm", "feed_forward": "gelu", "biases": True, "positions": "learned"},
        {"normalization": "rmsnorm", "normalization_place": "post", "positions": "shortformer"},
        {"positions": "rotary", "d_head": 4, "qk_normalization": True, "attention": "local", "attention_window": 3},
    ],
    ids=str,
)
def test_every_architecture_is_pruned(tmp_path, tokens, options):
    model = random_model(tokens, **options)
    measure(tmp_path, model)
    n_heads = len(heads_of(model))
    for (procedure, _, _), rows in curves_of(tmp_path).items():
        assert rows[0]["n_pruned"] == 0
        assert procedure == "gates" or rows[-1]["n_pruned"] == n_heads
        assert all(row["parameters"] > 0 for row in rows)
    assert len(rows_of(tmp_path, "gates")) == 2 * n_heads
    differences = [row["logit_difference"] for row in rows_of(tmp_path, "pruned_models") if n_heads > 1]
    assert all(difference is None or difference < 1e-4 for difference in differences)


def test_a_model_without_heads_has_no_tables(tmp_path, tokens):
    measure(tmp_path, random_model(tokens, n_layers=0))
    assert not list(tmp_path.glob("*.parquet"))


def test_heads_that_training_pruned_are_removed(tmp_path, tokens):
    model = random_model(tokens)
    model.layers[0].attention.W_O[:] = 0
    measure(tmp_path, model)
    (row,) = (row for row in rows_of(tmp_path, "pruned_models") if row["procedure"] == "training")
    assert (row["order_method"], row["n_pruned"], row["chosen_as"]) == ("gradient", 2, "trained")
    assert row["heads_per_layer"] == [2]
    assert row["logit_difference"] < 1e-5
    assert row["checkpoint_bytes"] < row["intact_checkpoint_bytes"]


def test_one_sequence_has_losses_but_no_intervals(monkeypatch, tmp_path, tokens):
    for name, text in (("evaluation_text", evaluation_text), ("reference_text", reference_text)):
        monkeypatch.setattr(trained_model, name, lambda tokens, n_ctx, n, text=text: text(tokens, n_ctx, 1))
    measure(tmp_path, random_model(tokens))
    rows = rows_of(tmp_path, "pruning")
    assert all(row["ci_low_nats"] is None and row["ci_high_nats"] is None for row in rows)
    assert all(row["loss_nats"] > 0 for row in rows)


def test_too_short_a_text_is_refused(tmp_path, tokens):
    with pytest.raises(UserError, match="more than n_ctx"):
        measure(tmp_path, random_model(tokens, n_ctx=len(tokens.validation)))


# What is chosen.


def test_examples():
    assert doctest.testmod(pruned_models).failed == 0


def test_models_worth_keeping():
    keep, increases = PruningConfig().keep, {0: 0.0, 1: 0.02, 2: 0.009, 3: 0.2, 4: 0.04}
    assert choose(increases, 4, keep) == {2: ["within 1 %", "half"], 4: ["within 5 %"]}
    assert choose(increases, 4, ["half"]) == {2: ["half"]}
    assert choose(increases, 4, []) == {}
    assert choose({0: 0.0, 1: 0.01}, 1, keep) == {1: ["within 5 %"]}  # under 1 %, not at it
    assert choose({0: 0.0, 3: 0.1}, 5, keep) == {}


def test_gates_half_open_are_the_nearest():
    few, some, many = (Gates(n / 10, [torch.tensor([9.0] * (5 - n) + [-9.0] * n)]) for n in (1, 2, 5))
    assert half_open([few, some, many], 5) is some
    assert half_open([few, many], 5) is few
    assert half_open([few, some, many], 8) is few  # 4 are open, 3 and none


def test_of_as_many_gates_those_count_that_cost_least(tokens):
    model = random_model(tokens)
    text = reference_text(tokens, 16, 3).sequences
    subject = Subject(model, *evaluation_text(tokens, 16, 3), text, mean_z(model, text))
    singles = [frozenset([head]) for head in heads_of(model)]
    curves = measure_curves(subject, {"all": singles} | {head: [head] for head in singles})
    lowest = min(relative_increases(curves[head])[1] for head in singles)
    assert [len(point.pruned) for point in curves["all"]] == [0, 1]
    assert relative_increases(curves["all"]) == {0: 0.0, 1: lowest}


def test_relative_increase_is_of_means():
    curve = [Point(frozenset(), torch.tensor([1.0, 3.0])), Point(frozenset([Head(0, 0)]), torch.tensor([2.0, 3.0]))]
    assert relative_increases(curve) == {0: 0.0, 1: 0.25}
