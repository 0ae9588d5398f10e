"""The stage that ablates feed-forward neurons: its table, its intervals, and models that have none."""

import pyarrow.parquet as pq
import pytest
import torch
from tiny import tiny_tokens

from headstream.models.architecture import Architecture
from headstream.models.transformer import Transformer
from headstream.tasks.measuring.feed_forward import measure_feed_forward
from headstream.tasks.measuring.trained_model import TrainedModel
from headstream.tasks.results.tables import table_schema
from headstream.tasks.study.analyses.feed_forward_config import FeedForwardConfig
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training.checkpoints import save_checkpoint, write_model_card

CONFIG = FeedForwardConfig(windows=7, reference_windows=5, n_groups=3)


def random_model(**options):
    architecture = Architecture(
        **{"n_layers": 2, "n_heads": 2, "d_model": 10, "n_ctx": 32, "feed_forward": "gelu", "d_mlp": 7, **options}
    )
    vocabulary = Tokens.open(tiny_tokens()).vocabulary
    return Transformer(architecture, vocabulary).initialize(torch.Generator().manual_seed(0))


def measure(folder, model, config=CONFIG):
    save_checkpoint(folder, model, 3)
    write_model_card(folder, model, 100)
    heard = []
    measure_feed_forward(config, TrainedModel("m", folder, tiny_tokens(), folder, heard.append))
    assert heard == sorted(heard)
    file = folder / "feed_forward_ablations.parquet"
    return pq.read_table(file) if file.exists() else None


def test_every_part_of_every_layer_has_its_rows(tmp_path):
    table = measure(tmp_path, random_model())
    assert table.schema.names == table_schema("feed_forward_ablations").names
    rows = table.to_pylist()
    keys = [(row["layer"], row["method"], row["part"], row["first_neuron"], row["n_neurons"]) for row in rows]
    parts = [("all", 0, 7), ("group 0", 0, 3), ("group 1", 3, 2), ("group 2", 5, 2)]
    assert sorted(keys) == [(i, method, *part) for i in (0, 1) for method in ("mean", "zero") for part in parts]
    for row in rows:
        assert row["ci_low_nats"] < row["loss_effect_nats"] < row["ci_high_nats"]
        assert row["kl_nats"] > 0
        assert row["n_sequences"] == 7
    for method in ("mean", "zero"):
        shared = [row for row in rows if row["method"] == method and row["share_of_loss"] is not None]
        of_all = [row["loss_effect_nats"] / row["share_of_loss"] for row in shared]
        assert of_all == pytest.approx(of_all[:1] * len(of_all)), "all are shares of one effect"


def test_of_many_groups_fewer_sequences_are_used(tmp_path):
    config = FeedForwardConfig(windows=12, reference_windows=5, n_groups=3, max_reruns=72)  # 8 parts of two layers
    assert set(measure(tmp_path, random_model(), config)["n_sequences"].to_pylist()) == {9}


def test_the_only_layer_has_all_of_the_effect(tmp_path):
    known = []
    for sign in (1, -1):  # what lowers the loss with one raises it with the other
        model, folder = random_model(n_layers=1, n_heads=1), tmp_path / str(sign)
        model.layers[0].feed_forward.W_out.data *= sign
        folder.mkdir()
        shares = {
            row["method"]: row["share_of_loss"] for row in measure(folder, model).to_pylist() if row["part"] == "all"
        }
        assert set(shares) == {"zero", "mean"}
        known += [share for share in shares.values() if share is not None]
    assert known == pytest.approx([1.0] * len(known), rel=1e-3)
    assert known


def test_layers_that_change_nothing_have_no_share(tmp_path):
    model = random_model()
    for layer in model.layers:
        layer.feed_forward.W_out.data.zero_()
    table = measure(tmp_path, model)
    rows = table.to_pylist()
    assert {(row["loss_effect_nats"], row["kl_nats"], row["ci_low_nats"], row["ci_high_nats"]) for row in rows} == {
        (0, 0, 0, 0)
    }
    assert {row["share_of_loss"] for row in rows} <= {None, 0}, "rounding may leave a loss to share"


def test_a_single_sequence_has_no_interval(tmp_path):
    table = measure(tmp_path, random_model(), CONFIG.model_copy(update={"windows": 1, "reference_windows": 1}))
    assert {(row["ci_low_nats"], row["ci_high_nats"]) for row in table.to_pylist()} == {(None, None)}


@pytest.mark.parametrize("options", [{"feed_forward": "none", "d_mlp": None}, {"n_layers": 0}])
def test_models_without_feed_forward_layers_have_no_rows(tmp_path, options):
    table = measure(tmp_path, random_model(**options))
    assert table is None


@pytest.mark.parametrize(
    "options",
    [
        {"normalization": "layernorm", "biases": True, "positions": "rotary", "d_head": 4},
        {"normalization": "rmsnorm", "normalization_place": "post", "feed_forward": "relu"},
        {"n_heads": (2, 0), "d_head": 3, "output_biases": True, "positions": "learned"},
    ],
)
def test_the_same_model_measures_the_same(tmp_path, options):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        measure(tmp_path / name, random_model(**options))
    first, second = ((tmp_path / name / "feed_forward_ablations.parquet").read_bytes() for name in ("a", "b"))
    assert first == second
