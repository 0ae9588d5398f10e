"""The stage that ablates and scores every head: its tables, and where values are missing."""

import doctest
import math
from typing import get_args

import pyarrow.parquet as pq
import pytest
import torch
from tiny import tiny_tokens

from headstream.models.architecture import Architecture
from headstream.models.clustered_errors import clustered_mean
from headstream.models.heads.importance_methods import METHODS
from headstream.models.heads.references import mean_z
from headstream.models.losses import sequence_losses
from headstream.models.transformer import Transformer
from headstream.tasks.measuring import budgets, trained_model
from headstream.tasks.measuring.budgets import windows_within_budget
from headstream.tasks.measuring.head_rows import importance_rows
from headstream.tasks.measuring.importance import ablations_of, measure_importance
from headstream.tasks.measuring.pruning_curves import ITERATIVE
from headstream.tasks.measuring.trained_model import TrainedModel
from headstream.tasks.results.tables import SCHEMA, table_schema
from headstream.tasks.study.analyses.importance_config import ImportanceConfig
from headstream.tasks.study.analyses.pruning_config import IterativeMethod, Method
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.text.windows import evaluation_text, reference_text
from headstream.tasks.training.checkpoints import save_checkpoint, write_model_card

CONFIG = ImportanceConfig(windows=6, reference_windows=3)
N_ABLATIONS = 10


@pytest.fixture(scope="module")
def tokens():
    return Tokens.open(tiny_tokens())


def random_model(tokens, **options):
    architecture = Architecture(**{"n_layers": 2, "n_heads": 2, "d_model": 10, "n_ctx": 32, **options})
    model = Transformer(architecture, tokens.vocabulary).initialize(torch.Generator().manual_seed(0))
    return model.requires_grad_(False)


def measure(folder, model, config=CONFIG, **options):
    save_checkpoint(folder, model, step=3)
    write_model_card(folder, model, 100)
    return measure_importance(config, TrainedModel("m", folder, tiny_tokens(), folder, **options))


def rows_of(folder, name):
    return pq.read_table(folder / f"{name}.parquet").to_pylist()


@pytest.fixture(scope="module")
def measured(tmp_path_factory, tokens):
    folder, heard = tmp_path_factory.mktemp("importance"), []
    measure(folder, random_model(tokens), on_progress=heard.append)
    return folder, heard


def test_every_head_has_every_ablation_and_score(measured):
    folder, heard = measured
    for name, kinds in (("ablations", N_ABLATIONS), ("importance", len(METHODS))):
        table = pq.read_table(folder / f"{name}.parquet")
        assert table.schema.names == table_schema(name).names
        assert len(table) == 4 * kinds
        assert not any(table[column].null_count for column in table.schema.names)
        assert set(table["model_id"].to_pylist()) == {"m"}
    assert heard == sorted(heard)
    assert heard[-1] == 0.8


def test_effects_are_those_of_masked_models_on_other_text_than_their_means(measured, tokens):
    folder, _ = measured
    model, (text, documents) = random_model(tokens), evaluation_text(tokens, 32, 6)
    mean = mean_z(model, reference_text(tokens, 32, 3).sequences)
    found = {
        (row["layer"], row["head"]): row
        for row in rows_of(folder, "ablations")
        if (row["ablated"], row["method"], row["scope"]) == ("head", "mean", "full")
    }
    scores = {(r["layer"], r["head"]): r for r in rows_of(folder, "importance") if r["method"] == "ablation_mean"}
    for (layer, head), row in found.items():
        mask = [torch.ones(2), torch.ones(2)]
        mask[layer][head] = 0
        effects = sequence_losses(model, text, mask, mean) - sequence_losses(model, text)
        assert row["loss_effect_nats"] == pytest.approx(effects.mean().item(), abs=1e-6)
        ends = [end.item() for end in clustered_mean(effects, documents).interval()]
        assert [row["ci_low_nats"], row["ci_high_nats"]] == pytest.approx(ends, abs=1e-6)
        assert row["kl_nats"] >= 0
        assert row["n_sequences"] == 6
        assert scores[layer, head]["score"] == row["loss_effect_nats"]


def test_the_readme_says_what_every_score_is():
    readme = (SCHEMA.parent / "README.md").read_text()
    assert all(f"\n| {method} | " in readme for method in METHODS)


def test_ranks_count_from_the_highest_and_leave_missing_scores_out():
    scores = [torch.tensor([1.0, math.nan, 3.0]), torch.tensor([3.0, -2.0])]
    rows = importance_rows("lrp", scores)
    assert [row["rank"] for row in rows] == [2, None, 0, 1, 3]
    assert [(row["layer"], row["head"]) for row in rows] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert [row["normalised"] for row in rows] == pytest.approx(
        [0.1**0.5, math.nan, 0.9**0.5, 3 / 13**0.5, -2 / 13**0.5], nan_ok=True
    )


def test_the_same_model_measures_the_same(measured, tmp_path, tokens):
    folder, _ = measured
    measure(tmp_path, random_model(tokens))
    for name in ("ablations", "importance"):
        assert (tmp_path / f"{name}.parquet").read_bytes() == (folder / f"{name}.parquet").read_bytes()


@pytest.mark.parametrize(
    ("options", "n_heads"),
    [
        ({"n_layers": 1, "n_heads": 1}, 1),
        ({"n_layers": 3, "n_heads": (1, 0, 2), "d_head": 5, "output_biases": True}, 3),
        ({"normalization": "layernorm", "feed_forward": "gelu", "biases": True, "positions": "learned"}, 4),
        ({"normalization": "rmsnorm", "normalization_place": "post", "positions": "shortformer"}, 4),
    ],
)
def test_every_setting_has_its_rows(tmp_path, tokens, options, n_heads):
    measure(tmp_path, random_model(tokens, **options))
    assert len(rows_of(tmp_path, "ablations")) == n_heads * N_ABLATIONS
    assert {row["score"] is None for row in rows_of(tmp_path, "importance")} == {False}


def test_a_study_says_how_heads_are_ablated(tmp_path, measured, tokens):
    folder, _ = measured
    few = {"replacements": ("mean",), "scopes": ("full",), "others": False}
    measure(tmp_path, random_model(tokens), CONFIG.model_copy(update=few))
    kept = [row for row in rows_of(folder, "ablations") if row["method"] == "mean" and row["scope"] == "full"]
    assert rows_of(tmp_path, "ablations") == [row for row in kept if row["ablated"] == "head"]
    left_out = {"ablation_zero", "ablation_resample"}
    assert rows_of(tmp_path, "importance") == [
        row for row in rows_of(folder, "importance") if row["method"] not in left_out
    ]
    assert len(ablations_of(CONFIG)) == N_ABLATIONS


def test_of_many_heads_fewer_sequences_are_used(tmp_path, tokens):
    assert doctest.testmod(budgets).failed == 0
    assert windows_within_budget(4, 10, 1000) == 4
    config = CONFIG.model_copy(update={"windows": 12, "max_reruns": 36})
    measure(tmp_path, random_model(tokens), config)  # of 4 heads
    assert {row["n_sequences"] for row in rows_of(tmp_path, "ablations")} == {9}


def test_studies_choose_among_the_scores_that_there_are():
    assert get_args(Method) == tuple(METHODS)
    assert get_args(IterativeMethod) == tuple(method for group in ITERATIVE for method in group)


@pytest.mark.parametrize("options", [{"n_layers": 0}, {"n_heads": (0, 0), "d_head": 5}])
def test_without_heads_there_are_no_tables(tmp_path, tokens, options):
    measure(tmp_path, random_model(tokens, **options))
    assert list(tmp_path.glob("*.parquet")) == []


def test_a_single_sequence_has_no_intervals_and_none_to_resample_from(tmp_path, tokens, monkeypatch):
    monkeypatch.setattr(trained_model, "evaluation_text", lambda tokens, n, _: evaluation_text(tokens, n, 1))
    measure(tmp_path, random_model(tokens))
    for row in rows_of(tmp_path, "ablations"):
        assert row["ci_low_nats"] is row["ci_high_nats"] is None
        assert (row["loss_effect_nats"] is None) == (row["kl_nats"] is None) == (row["method"] == "resample")
    missing = {row["method"] for row in rows_of(tmp_path, "importance") if row["score"] is None}
    assert missing == {"attention_variance", "ablation_resample"}
