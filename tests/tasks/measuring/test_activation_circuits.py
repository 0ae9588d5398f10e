"""The stage that takes a model apart on text: its tables, and the circuit that a view puts together from them."""

import itertools

import pyarrow.parquet as pq
import pytest
import torch
from tiny import tiny_tokens

from headstream.models.architecture import Architecture
from headstream.models.circuits.paths import virtual_heads_of
from headstream.models.circuits.score_terms import ScoreTerm
from headstream.models.nodes import Head, Terminal
from headstream.models.transformer import Transformer
from headstream.tasks.errors import WorkError
from headstream.tasks.measuring.activation_circuits import measure_activation_circuits, strongest_pairs
from headstream.tasks.measuring.trained_model import TrainedModel
from headstream.tasks.results.tables import table_schema
from headstream.tasks.study.analyses.activation_circuits_config import ActivationCircuitsConfig
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training.checkpoints import save_checkpoint, write_model_card

EFFECTS = ("prefix_matching", "random_period", "_logit", "_without", "_change", "_effect_nats")
CONFIG = ActivationCircuitsConfig(path_windows=4, bigram_windows=8, bigram_samples=7)
TABLES = ["path_terms", "score_terms", "virtual_heads", "bigrams", "bigram_samples", "causal_checks"]
TABLES += ["joint_checks", "identities"]


@pytest.fixture(scope="module")
def tokens():
    return Tokens.open(tiny_tokens())


def save_model(folder, model, step=3):
    save_checkpoint(folder, model, step)
    write_model_card(folder, model, 100)


def random_model(tokens, **options):
    architecture = Architecture(**{"n_layers": 2, "n_heads": 2, "d_model": 10, "n_ctx": 32, **options})
    return Transformer(architecture, tokens.vocabulary).initialize(torch.Generator().manual_seed(0))


def rows_of(folder, name):
    return pq.read_table(folder / f"{name}.parquet").to_pylist()


def paths_sum_difference(folder):
    return {row["identity"]: row["difference"] for row in rows_of(folder, "identities")}["paths-sum"]


def measure(folder, model, config=CONFIG):
    save_model(folder, model)
    return measure_activation_circuits(config, TrainedModel("m", folder, tiny_tokens(), folder))


@pytest.fixture(scope="module")
def measured(tmp_path_factory, tokens):
    folder = tmp_path_factory.mktemp("circuits")
    save_model(folder, random_model(tokens))
    heard = []
    measure_activation_circuits(CONFIG, TrainedModel("m", folder, tiny_tokens(), folder, heard.append))
    return folder, heard


def test_every_table_has_every_column(measured):
    folder, heard = measured
    for name in TABLES:
        table = pq.read_table(folder / f"{name}.parquet")
        assert table.schema.names == table_schema(name).names
        assert set(table["model_id"].to_pylist()) == {"m"}
        missing = {column for column in table.schema.names if table[column].null_count}
        if name == "joint_checks":  # random heads read no writers
            assert missing == {column for column in table.schema.names if column.endswith(EFFECTS)}
            assert table["writers"].to_pylist() == [[]] * 6
            continue
        assert missing == ({"heads", "removal_effect_nats"} if name == "path_terms" else set())
    assert len(rows_of(folder, "virtual_heads")) == 4
    assert paths_sum_difference(folder) < 1e-4
    assert heard == sorted(heard)
    assert heard


def test_terms_are_named_by_their_heads(measured):
    folder, _ = measured
    terms = {row["term"]: row for row in rows_of(folder, "path_terms")}
    single, virtual = ["L0H0", "L0H1", "L1H0", "L1H1"], ["L0H0 > L1H0", "L0H0 > L1H1", "L0H1 > L1H0", "L0H1 > L1H1"]
    assert sorted(terms) == sorted([*single, *virtual, "order 0", "order 1", "order 2"])
    assert terms["L0H1 > L1H0"]["heads"] == ["L0H1", "L1H0"]
    assert terms["L0H1 > L1H0"]["term_order"] == 2
    assert terms["order 2"]["heads"] is None
    assert not any(row["linearised"] for row in terms.values())
    pairs = {(r["first_layer"], r["first_head"], r["second_head"]): r for r in rows_of(folder, "virtual_heads")}
    assert pairs[0, 1, 0]["loss_effect_nats"] == terms["L0H1 > L1H0"]["loss_effect_nats"]
    assert pairs[0, 1, 0]["second_layer"] == 1


def test_scores_are_taken_apart_before_training_too(tmp_path, tokens):
    for step in (0, 2, 3):  # what stands between is not read
        save_model(tmp_path, random_model(tokens), step)
    measure_activation_circuits(CONFIG, TrainedModel("m", tmp_path, tiny_tokens(), tmp_path))
    rows = rows_of(tmp_path, "score_terms")
    assert {row["step"] for row in rows} == {0, 3}
    for step in (0, 3):
        shares = [row["share"] for row in rows if (row["step"], row["layer"], row["head"]) == (step, 1, 0)]
        assert sum(shares) == pytest.approx(1)


def test_samples_are_the_most_frequent_bigrams(measured, tokens):
    folder, _ = measured
    samples = rows_of(folder, "bigram_samples")
    stream, labels = tokens.train.read(0, len(tokens.train)).astype(int).tolist(), tokens.token_labels()
    text = [labels[token] for token in stream]
    assert [row["rank"] for row in samples] == list(range(7))
    for row in samples:
        pairs = sum(pair == (row["source"], row["target"]) for pair in itertools.pairwise(text))
        assert row["n_pairs"] == pairs
    assert [row["n_pairs"] for row in samples] == sorted((row["n_pairs"] for row in samples), reverse=True)


def test_the_same_model_measures_the_same(measured, tmp_path, tokens):
    folder, _ = measured
    measure(tmp_path, random_model(tokens))
    for name in TABLES:
        assert (tmp_path / f"{name}.parquet").read_bytes() == (folder / f"{name}.parquet").read_bytes()


@pytest.mark.parametrize(
    ("options", "n_terms", "n_pairs"),
    [
        ({"n_layers": 0}, 1, 0),
        ({"n_layers": 1, "n_heads": 1}, 3, 0),
        ({"n_layers": 2, "normalization": "layernorm", "feed_forward": "gelu"}, 4 + 4 + 4, 4),
        ({"n_layers": 2, "normalization": "rmsnorm", "normalization_place": "post", "biases": True}, 3 + 4 + 4, 4),
        ({"n_layers": 2, "n_ctx": 8}, 3 + 4 + 4, 4),
    ],
)
def test_every_setting_has_its_terms(tmp_path, tokens, options, n_terms, n_pairs):
    measure(tmp_path, random_model(tokens, **options))
    terms = rows_of(tmp_path, "path_terms")
    assert len(terms) == n_terms
    assert all(row["linearised"] == ("normalization" in options) for row in terms)
    assert len(rows_of(tmp_path, "virtual_heads")) == n_pairs
    checks = rows_of(tmp_path, "causal_checks")
    assert len(checks) == 3 * n_pairs
    assert paths_sum_difference(tmp_path) < 1e-4
    by_weights = [row["ov_norm"] is None for row in rows_of(tmp_path, "virtual_heads")]
    assert all(by_weights) == (options.get("normalization_place") == "post" or not n_pairs)
    if options.get("n_ctx") == 8:  # too short for four periods
        assert {row["prefix_matching_without"] for row in checks} == {None}


def test_only_so_many_pairs_are_followed(tmp_path, tokens):
    measure(tmp_path, random_model(tokens, n_layers=3), CONFIG.model_copy(update={"max_pairs": 2}))
    virtual = rows_of(tmp_path, "virtual_heads")
    assert len(virtual) == 12
    followed = {row["ov_norm"] for row in virtual if row["loss_effect_nats"] is not None}
    assert followed == set(sorted((row["ov_norm"] for row in virtual), reverse=True)[:2])
    assert len(rows_of(tmp_path, "causal_checks")) == 2 * 3


def test_the_strongest_pairs_have_the_largest_shares():
    pairs = virtual_heads_of((2, 2))
    terms = [
        ScoreTerm(Head(1, 0), Terminal.EMBEDDING, Head(0, 1), 1.0, 0.3),
        ScoreTerm(Head(1, 0), Head(0, 0), Terminal.EMBEDDING, 1.0, 0.2),
        ScoreTerm(Head(1, 1), Head(0, 0), Head(0, 0), 1.0, -0.6),
        ScoreTerm(Head(1, 1), Head(0, 1), Terminal.EMBEDDING, 0.0, float("nan")),
    ]
    assert strongest_pairs(terms, pairs, 2) == {(Head(0, 0), Head(1, 1)), (Head(0, 1), Head(1, 0))}
    assert strongest_pairs(terms, pairs, 0) == set()


def test_weights_that_are_not_finite_are_refused(tmp_path, tokens):
    model = random_model(tokens)
    model.W_E.data[3, 4] = torch.nan
    with pytest.raises(WorkError, match="finite"):
        measure(tmp_path, model)
