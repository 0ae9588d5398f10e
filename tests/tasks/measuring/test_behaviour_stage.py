"""The stage that measures a model's checkpoints: its tables, its text, its passage."""

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from planted import induction_model
from tiny import tiny_tokens

from headstream.models.architecture import Architecture
from headstream.models.clustered_errors import clustered_mean
from headstream.models.losses import sequence_losses
from headstream.models.transformer import Transformer
from headstream.tasks.errors import UserError
from headstream.tasks.measuring.behaviour import choose_passage, measure_behaviour, token_class
from headstream.tasks.measuring.trained_model import TrainedModel
from headstream.tasks.results.tables import table_schema
from headstream.tasks.study.analyses.behaviour_config import BehaviourConfig
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.text.windows import evaluation_text, training_text
from headstream.tasks.training.checkpoints import load_model, save_checkpoint, write_model_card

CONFIG = BehaviourConfig(loss_windows=6, pattern_windows=3, random_period_sequences=8, passage_tokens=11)
# Training text is measured on at the last checkpoint only; these heads have no gates.
MISSING = {"evaluations": {"train_loss_nats", "train_loss_sem_nats"}, "heads": {"active_fraction"}}
TABLES = ["evaluations", "position_losses", "repeat_losses", "heads", "attention_samples", "attention_aggregates"]


@pytest.fixture(scope="module")
def tokens():
    return Tokens.open(tiny_tokens())


def save_model(folder, tokens, n_ctx=32, steps=(0, 7), **options):
    architecture = Architecture(**{"n_layers": 2, "n_heads": 2, "d_model": 10, **options, "n_ctx": n_ctx})
    for step in steps:
        model = Transformer(architecture, tokens.vocabulary).initialize(torch.Generator().manual_seed(step))
        save_checkpoint(folder, model, step)
    write_model_card(folder, model, 100)
    return model


def rows_of(folder, name):
    return pq.read_table(folder / f"{name}.parquet").to_pylist()


@pytest.fixture(scope="module")
def measured(tmp_path_factory, tokens):
    folder = tmp_path_factory.mktemp("behaviour")
    save_model(folder, tokens)
    heard = []
    measure_behaviour(CONFIG, TrainedModel("m", folder, tiny_tokens(), folder, heard.append))
    return folder, heard


def test_every_table_has_every_column_and_no_value_is_missing(measured):
    folder, _ = measured
    for name in TABLES:
        table = pq.read_table(folder / f"{name}.parquet")
        expected = table_schema(name).names
        if name == "heads":  # less another stage's columns
            del expected[expected.index("copying_eigenvalues") : expected.index("active_fraction")]
        assert table.schema.names == expected
        missing = {column for column in table.schema.names if table[column].null_count}
        assert missing == MISSING.get(name, set()), name
        assert set(table["model_id"].to_pylist()) == {"m"}


def test_rows_are_per_checkpoint(measured):
    folder, heard = measured
    evaluations = rows_of(folder, "evaluations")
    assert [(row["step"], row["tokens"]) for row in evaluations] == [(0, 0), (7, 700)]
    assert {row["early_index"] for row in evaluations} == {3}
    assert [row["position"] for row in rows_of(folder, "position_losses")] == 2 * list(range(32))
    first_times = [row["loss_nats"] for row in rows_of(folder, "repeat_losses") if row["occurrence"] == 1]
    assert first_times == pytest.approx([row["first_occurrence_loss_nats"] for row in evaluations])
    heads = rows_of(folder, "heads")
    assert [(row["step"], row["layer"], row["head"]) for row in heads] == [
        (step, layer, head) for step in (0, 7) for layer in (0, 1) for head in (0, 1)
    ]
    by_position = [row["loss_nats"] for row in rows_of(folder, "position_losses") if row["step"] == 7]
    assert evaluations[1]["validation_loss_nats"] == pytest.approx(np.mean(by_position))
    assert evaluations[0]["validation_loss_nats"] != evaluations[1]["validation_loss_nats"]
    assert heard == [0.5, 1.0]


def test_training_text_is_measured_on_as_validation_text_is_at_the_last_checkpoint(measured, tokens):
    folder, _ = measured
    first, last = rows_of(folder, "evaluations")
    assert first["train_loss_nats"] is None
    for name, text in (("train", training_text), ("validation", evaluation_text)):
        sequences, documents = text(tokens, 32, CONFIG.loss_windows)
        loss = clustered_mean(sequence_losses(load_model(folder, 7), sequences), documents)
        assert last[f"{name}_loss_nats"] == pytest.approx(loss.mean.item())
        assert last[f"{name}_loss_sem_nats"] == pytest.approx(loss.sem.item())
    assert last["n_documents"] == len(documents.unique()) > 2
    assert last["n_windows"] == len(sequences)


def test_attention_samples_are_rows_of_patterns(measured, tokens):
    folder, _ = measured
    samples = rows_of(folder, "attention_samples")
    n = CONFIG.passage_tokens
    assert len(samples) == 2 * 2 * n * (n + 1) // 2
    totals = {}
    for row in samples:
        assert 0 <= row["key"] <= row["query"] < n
        place = row["layer"], row["head"], row["query"]
        totals[place] = totals.get(place, 0) + row["weight"]
    assert list(totals.values()) == pytest.approx([1] * (4 * n))
    labels, passage = tokens.token_labels(), choose_passage(tokens, n)
    assert {row["query"]: row["query_token"] for row in samples} == {i: labels[t] for i, t in enumerate(passage)}
    assert {row["key"]: row["key_token"] for row in samples} == {i: labels[t] for i, t in enumerate(passage)}
    # A weight in the middle, against the model itself.
    pattern = load_model(folder, 7).trace(torch.from_numpy(passage)[None]).layers[1].pattern[0, 1]
    (row,) = [r for r in samples if (r["layer"], r["head"], r["query"], r["key"]) == (1, 1, 7, 4)]
    assert row["weight"] == pytest.approx(pattern[7, 4].item(), abs=1e-6)


def test_the_same_model_measures_the_same(measured, tmp_path):
    folder, _ = measured
    measure_behaviour(CONFIG, TrainedModel("m", folder, tiny_tokens(), tmp_path))
    for name in TABLES:
        assert (tmp_path / f"{name}.parquet").read_bytes() == (folder / f"{name}.parquet").read_bytes()


def test_a_model_without_layers_has_no_heads(tmp_path, tokens):
    save_model(tmp_path, tokens, n_layers=0)
    measure_behaviour(CONFIG, TrainedModel("m", tmp_path, tiny_tokens(), tmp_path))
    assert rows_of(tmp_path, "heads") == []
    assert len(rows_of(tmp_path, "evaluations")) == 2
    assert not (tmp_path / "attention_samples.parquet").exists()


def test_what_can_not_be_computed_is_null(tmp_path, tokens):
    """Nothing repeats four times within 8 positions."""
    save_model(tmp_path, tokens, n_ctx=8)
    measure_behaviour(CONFIG, TrainedModel("m", tmp_path, tiny_tokens(), tmp_path))
    for row in rows_of(tmp_path, "heads"):
        assert row["prefix_matching"] is None
        assert row["previous_token"] > 0


def test_planted_induction_is_found_through_the_stage(tmp_path, tokens):
    model = induction_model(tokens.vocabulary, n_ctx=64)
    save_checkpoint(tmp_path, model, 0)
    write_model_card(tmp_path, model, 1)
    measure_behaviour(CONFIG, TrainedModel("m", tmp_path, tiny_tokens(), tmp_path))
    heads = rows_of(tmp_path, "heads")
    assert max(row["induction_random_period"] for row in heads) > 0.99
    assert max(row["previous_token"] for row in heads) > 0.99
    assert rows_of(tmp_path, "evaluations")[0]["repeat_gain_nats"] > 4


def test_too_short_a_validation_text_is_refused(tmp_path, tokens):
    save_model(tmp_path, tokens, n_ctx=len(tokens.validation) + 1)
    with pytest.raises(UserError, match="validation"):
        measure_behaviour(CONFIG, TrainedModel("m", tmp_path, tiny_tokens(), tmp_path))


def test_aggregates_are_of_the_passage_that_the_samples_are_of(measured):
    folder, _ = measured
    samples, heads = {}, set()
    for row in rows_of(folder, "attention_samples"):
        place = (row["layer"], row["query"], row["key"])
        samples.setdefault(place, []).append((row["query_token"], row["key_token"], row["weight"]))
        heads.add(row["head"])
    aggregates = rows_of(folder, "attention_aggregates")
    assert len(aggregates) == 3 * len(samples)
    totals = {}
    for row in aggregates:
        by_head = samples[row["layer"], row["query"], row["key"]]
        assert (row["query_token"], row["key_token"]) == by_head[0][:2]
        if row["method"] == "mean":
            assert row["weight"] == pytest.approx(sum(weight for _, _, weight in by_head) / len(heads), abs=1e-6)
        query = (row["method"], row["layer"], row["query"])
        totals[query] = totals.get(query, 0) + row["weight"]
    assert len(totals) == 3 * 2 * CONFIG.passage_tokens
    assert all(total == pytest.approx(1, abs=1e-6) for total in totals.values())


def test_layers_without_heads_have_aggregates_but_no_mean(tmp_path, tokens):
    save_model(tmp_path, tokens, n_layers=3, n_heads=(2, 0, 1), d_head=5)
    measure_behaviour(CONFIG, TrainedModel("m", tmp_path, tiny_tokens(), tmp_path))
    layers = {(row["method"], row["layer"]) for row in rows_of(tmp_path, "attention_aggregates")}
    assert {layer for method, layer in layers if method == "mean"} == {0, 2}
    assert {layer for method, layer in layers if method == "flow"} == {0, 1, 2}


def test_gates_are_measured_by_class_of_token(tokens, tmp_path):
    save_model(tmp_path, tokens, gates="dynamic")
    measure_behaviour(CONFIG, TrainedModel("m", tmp_path, tiny_tokens(), tmp_path))
    activity = rows_of(tmp_path, "gate_activity")
    assert (
        {"bos", "word", "space"} <= {row["token_class"] for row in activity} <= {"bos", "word", "space", "punctuation"}
    )
    assert {(row["layer"], row["head"]) for row in activity} == {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert all(row["active_fraction"] == 1 for row in activity)  # gates start open
    assert all(row["active_fraction"] == 1 for row in rows_of(tmp_path, "heads"))


def test_classes_of_tokens():
    labels = ("·def", "\\n··", "12", "()", "_x", "·")
    assert [token_class(label) for label in labels] == ["word", "space", "number", "punctuation", "word", "space"]
