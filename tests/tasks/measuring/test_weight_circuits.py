"""The stage that takes a model's weights apart: its tables, its facts, and what it can't take apart."""

import pyarrow.parquet as pq
import pytest
import torch
from planted import attention_of, induction_model
from random_models import initial_model
from tiny import letter_tokens, tiny_tokens

from headstream.models.circuits.composition import head_pairs
from headstream.tasks.errors import UserError, WorkError
from headstream.tasks.measuring.trained_model import TrainedModel
from headstream.tasks.measuring.weight_circuits import TABLES, measure_weight_circuits
from headstream.tasks.results.tables import table_schema
from headstream.tasks.study.analyses.weight_circuits_config import WeightCircuitsConfig
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training.checkpoints import save_checkpoint, write_model_card

CONFIG = WeightCircuitsConfig(
    rotations=5, statistics_tokens=5000, min_count=3, evaluator_sequences=2, persistence_windows=2
)
MAY_BE_NULL = {
    "heads": set(),
    "compositions": {"matching_eigenvalues"},
    "skip_trigrams": {"other_destination", "other_output"},
    "subspaces": {"rewriting"},
    "eigenvalues": {"writer_layer", "writer_head"},
}


@pytest.fixture(scope="module")
def tokens():
    return Tokens.open(tiny_tokens())


def save_models(folder, *models):
    for step, model in enumerate(models):
        save_checkpoint(folder, model.float(), step)
    write_model_card(folder, models[-1], 100)


def save_initial(folder, tokens, **options):
    shape = {"n_layers": 2, "n_heads": 2, "d_model": 10, "n_ctx": 32, **options}
    save_models(folder, *(initial_model(seed, tokens.vocabulary, **shape) for seed in (0, 1)))


def rows_of(folder, name):
    return pq.read_table(folder / f"{name}.parquet").to_pylist()


@pytest.fixture(scope="module")
def measured(tmp_path_factory, tokens):
    folder = tmp_path_factory.mktemp("circuits")
    save_initial(folder, tokens, n_layers=3, n_heads=(2, 1, 2), d_head=5, d_value=3)
    heard = []
    measure_weight_circuits(CONFIG, TrainedModel("m", folder, tiny_tokens(), folder, heard.append))
    return folder, heard


def test_every_table_has_every_column_and_values(measured):
    folder, _ = measured
    for name in TABLES:
        table = pq.read_table(folder / f"{name}.parquet")
        expected = table_schema(name).names
        if name == "heads":  # less another stage's columns
            del expected[expected.index("previous_token") : expected.index("copying_eigenvalues")]
            expected.remove("active_fraction")
        assert table.schema.names == expected
        missing = {column for column in table.schema.names if table[column].null_count}
        assert missing <= MAY_BE_NULL[name], name
        assert set(table["model_id"].to_pylist()) == {"m"}


def test_heads_and_compositions_have_every_checkpoint(measured):
    folder, heard = measured
    places = [(layer, head) for layer, n in enumerate((2, 1, 2)) for head in range(n)]
    heads = rows_of(folder, "heads")
    assert [(r["step"], r["layer"], r["head"]) for r in heads] == [(s, *place) for s in (0, 1) for place in places]
    assert {row["ov_rank"] for row in heads} == {3}
    compositions = rows_of(folder, "compositions")
    pairs = sorted(head_pairs((2, 1, 2)).tolist())
    found = [
        [row[name] for name in ("writer_layer", "writer_head", "reader_layer", "reader_head")] for row in compositions
    ]
    assert found == [pair for _ in (0, 1) for pair in pairs for _ in "KQV"]
    assert all(row["score"] == row["initial_score"] for row in compositions if row["step"] == 0)
    assert [row["matching_eigenvalues"] is not None for row in compositions] == [
        row["kind"] == "K" for row in compositions
    ]
    assert heard == pytest.approx([1 / 3, 2 / 3])


def test_overlaps_of_what_a_head_reads_are_those_of_the_two_maps_they_name(measured, tokens):
    folder, _ = measured
    heads = [row for row in rows_of(folder, "heads") if row["step"] == 1]
    assert len(heads) == 5
    shape = {"n_layers": 3, "n_heads": (2, 1, 2), "d_model": 10, "n_ctx": 32, "d_head": 5, "d_value": 3}
    model = initial_model(1, tokens.vocabulary, **shape)
    for row in heads:
        attention = attention_of(model, row["layer"])
        reads = {"query": attention.W_Q, "key": attention.W_K, "value": attention.W_V}
        bases = {name: torch.linalg.qr(weight[row["head"]]).Q for name, weight in reads.items()}
        for one, other in (("query", "key"), ("query", "value"), ("key", "value")):
            cosines = torch.linalg.svdvals(bases[one].T @ bases[other])
            expected = pytest.approx(cosines.square().mean().item(), rel=1e-4)
            assert row[f"{one}_{other}_overlap"] == expected


def test_matching_is_tested_of_each_heads_best_writer_and_the_pairs_that_compose_most(measured, tmp_path, tokens):
    folder, _ = measured
    save_initial(tmp_path, tokens, n_layers=3, n_heads=(2, 1, 2), d_head=5, d_value=3)
    config = CONFIG.model_copy(update={"matching_pairs": 1})
    measure_weight_circuits(config, TrainedModel("m", tmp_path, tiny_tokens(), tmp_path))
    whole, few = ([row for row in rows_of(at, "compositions") if row["kind"] == "K"] for at in (folder, tmp_path))
    for step in (0, 1):
        rows = [row for row in whole if row["step"] == step]
        readers = {(row["reader_layer"], row["reader_head"]) for row in rows}
        best = [
            max((row for row in rows if (row["reader_layer"], row["reader_head"]) == place), key=lambda row: row["z"])
            for place in readers
        ]
        tested = [row for row in few if row["step"] == step and row["matching_eigenvalues"] is not None]
        assert len(tested) == len(readers) == 3  # the pair that composes most is the best of its reader
        assert all(row in tested for row in best)


def test_spectra_are_whole_and_add_up_to_the_scores(measured):
    folder, _ = measured
    rows = rows_of(folder, "eigenvalues")
    last = {(r["layer"], r["head"]): r for r in rows_of(folder, "heads") if r["step"] == 1}
    for (layer, head), scores in last.items():
        for circuit, n, score in (("OV", 3, "copying_eigenvalues"), ("QK", 5, "matching_eigenvalues")):
            own = [r for r in rows if (r["layer"], r["head"], r["circuit"]) == (layer, head, circuit)]
            assert [r["rank"] for r in own] == list(range(n))
            sizes = [abs(complex(r["real"], r["imaginary"])) for r in own]
            assert sizes == sorted(sizes, reverse=True)
            assert sum(r["real"] for r in own) / sum(sizes) == pytest.approx(scores[score])
    composed = [r for r in rows if r["circuit"] == "K-composed"]
    assert {(r["layer"], r["head"]) for r in composed} == {(1, 0), (2, 0), (2, 1)}
    z = {
        tuple(r[n] for n in ("reader_layer", "reader_head", "writer_layer", "writer_head")): r["z"]
        for r in rows_of(folder, "compositions")
        if r["step"] == 1 and r["kind"] == "K"
    }
    for row in composed:
        reader = row["layer"], row["head"]
        best = max((key for key in z if key[:2] == reader), key=z.__getitem__)
        assert best[2:] == (row["writer_layer"], row["writer_head"])


def test_skip_trigrams_are_text(measured, tokens):
    folder, _ = measured
    rows = rows_of(folder, "skip_trigrams")
    assert {row["source"] for row in rows} <= set(tokens.token_labels())
    assert all(row["qk_effect"] > 0 and row["ov_effect"] > 0 and row["n_pairs"] >= 3 for row in rows)


def test_a_planted_circuit_is_found_through_the_stage(tmp_path):
    """Induction, after an initialisation with random heads; the heads that write nothing have no scores."""
    vocabulary = Tokens.open(letter_tokens()).vocabulary
    trained = induction_model(vocabulary, n_ctx=32)
    initial = induction_model(vocabulary, n_ctx=32)
    generator = torch.Generator().manual_seed(0)
    for layer in (0, 1):
        for parameter in attention_of(initial, layer).parameters():
            parameter.normal_(0, 0.1, generator=generator)
    save_models(tmp_path, initial, trained)
    measure_weight_circuits(CONFIG, TrainedModel("m", tmp_path, letter_tokens(), tmp_path))
    rows = [row for row in rows_of(tmp_path, "compositions") if row["step"] == 1]
    (found,) = [row for row in rows if row["significant"]]
    assert [found[name] for name in ("writer_head", "reader_head", "kind")] == [0, 1, "K"]
    assert found["matching_eigenvalues"] == pytest.approx(1)
    assert len(rows) == 3  # two of the heads write nothing: they are none
    heads = {(row["layer"], row["head"]): row for row in rows_of(tmp_path, "heads") if row["step"] == 1}
    assert heads[1, 1]["copying_eigenvalues"] == pytest.approx(1)
    assert heads[1, 1]["copying_top1"] == 1
    assert set(heads) == {(0, 0), (1, 1)}


@pytest.mark.parametrize("options", [{"n_layers": 0}, {"n_layers": 1, "n_heads": 1}])
def test_models_without_pairs_have_empty_tables(tmp_path, tokens, options):
    save_initial(tmp_path, tokens, **options)
    measure_weight_circuits(CONFIG, TrainedModel("m", tmp_path, tiny_tokens(), tmp_path))
    assert rows_of(tmp_path, "compositions") == rows_of(tmp_path, "subspaces") == []
    assert len(rows_of(tmp_path, "heads")) == 2 * options["n_layers"]


@pytest.mark.parametrize(
    "options",
    [
        {"positions": "rotary", "d_head": 4, "biases": True},
        {"normalization": "layernorm", "feed_forward": "gelu", "tied_embeddings": True, "positions": "learned"},
        {"normalization": "rmsnorm", "qk_normalization": True, "positions": "shortformer"},
    ],
)
def test_every_other_architecture_is_taken_apart(tmp_path, tokens, options):
    save_initial(tmp_path, tokens, **options)
    measure_weight_circuits(CONFIG, TrainedModel("m", tmp_path, tiny_tokens(), tmp_path))
    heads = rows_of(tmp_path, "heads")
    assert all(row["qk_position_sd"] is None for row in heads)
    assert all(value is not None for row in heads for name, value in row.items() if name != "qk_position_sd")


def test_norms_between_layers_leave_empty_tables(tmp_path, tokens):
    save_initial(tmp_path, tokens, normalization="layernorm", normalization_place="post")
    measure_weight_circuits(CONFIG, TrainedModel("m", tmp_path, tiny_tokens(), tmp_path))
    assert all(rows_of(tmp_path, name) == [] for name in TABLES)


def test_a_diverged_checkpoint_is_refused(tmp_path, tokens):
    model = initial_model(0, tokens.vocabulary, n_layers=1, n_heads=2, d_model=10, n_ctx=32)
    attention_of(model, 0).W_V[1, 2, 3] = torch.nan
    save_models(tmp_path, model)
    with pytest.raises(WorkError, match=r"step 0 can't be taken apart: weights must be finite, got 1 in .*W_V"):
        measure_weight_circuits(CONFIG, TrainedModel("m", tmp_path, tiny_tokens(), tmp_path))


def test_too_short_a_text_is_refused(tmp_path, tokens):
    save_initial(tmp_path, tokens, n_ctx=len(tokens.validation) + 1)
    with pytest.raises(UserError, match="validation"):
        measure_weight_circuits(CONFIG, TrainedModel("m", tmp_path, tiny_tokens(), tmp_path))


def test_results_are_the_same_every_time(tmp_path, tokens):
    save_initial(tmp_path, tokens)
    written = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        measure_weight_circuits(CONFIG, TrainedModel("m", tmp_path, tiny_tokens(), tmp_path / name))
        written.append([(tmp_path / name / f"{table}.parquet").read_bytes() for table in TABLES])
    assert written[0] == written[1]
