"""The stage that compares heads: its tables, in every setting."""

import pyarrow.parquet as pq
import pytest
import torch
from tiny import tiny_tokens

from headstream.models.architecture import Architecture
from headstream.models.transformer import Transformer
from headstream.tasks.errors import WorkError
from headstream.tasks.measuring.redundancy import measure_redundancy, nearest_first
from headstream.tasks.measuring.trained_model import TrainedModel
from headstream.tasks.results.tables import table_schema
from headstream.tasks.study.analyses.redundancy_config import RedundancyConfig
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training.checkpoints import save_checkpoint, write_model_card

CONFIG = RedundancyConfig(windows=4, reference_windows=4)
TABLES = ("head_similarity", "head_clusters", "head_patterns")


@pytest.fixture(scope="module")
def tokens():
    return Tokens.open(tiny_tokens())


def random_model(tokens, seed=0, **options):
    architecture = Architecture(**{"n_layers": 2, "n_heads": 2, "d_model": 10, "n_ctx": 32, **options})
    return Transformer(architecture, tokens.vocabulary).initialize(torch.Generator().manual_seed(seed))


def measure(folder, model, config=CONFIG, initial=None, **options):
    if initial is not None:
        save_checkpoint(folder, initial, step=0)
    save_checkpoint(folder, model, step=3)
    write_model_card(folder, model, 100)
    return measure_redundancy(config, TrainedModel("m", folder, tiny_tokens(), folder, **options))


def rows_of(folder, name):
    return pq.read_table(folder / f"{name}.parquet").to_pylist()


@pytest.fixture(scope="module")
def measured(tmp_path_factory, tokens):
    folder, heard = tmp_path_factory.mktemp("redundancy"), []
    measure(folder, random_model(tokens), initial=random_model(tokens, seed=1), on_progress=heard.append)
    return folder, heard


def test_every_table_has_every_column(measured):
    folder, heard = measured
    for name in TABLES:
        table = pq.read_table(folder / f"{name}.parquet")
        assert table.schema.names == table_schema(name).names
        assert set(table["model_id"].to_pylist()) == {"m"}
        assert not any(column.null_count for column in table.columns)
    clusters = rows_of(folder, "head_clusters")
    assert len({row["cluster"] for row in clusters}) <= 4
    assert sorted(row["leaf"] for row in clusters) == [0, 1, 2, 3]
    patterns = rows_of(folder, "head_patterns")
    assert len(patterns) == 4 * 64
    assert all(len(row["weights"]) == row["query"] + 1 for row in patterns)
    assert all(sum(row["weights"]) == pytest.approx(1, abs=1e-5) for row in patterns)
    assert heard == sorted(heard)
    assert heard


def test_values_are_in_range(measured):
    folder, _ = measured
    pairs = rows_of(folder, "head_similarity")
    assert [(r["first_layer"], r["first_head"], r["second_layer"], r["second_head"]) for r in pairs] == [
        (0, 0, 0, 1),
        (0, 0, 1, 0),
        (0, 0, 1, 1),
        (0, 1, 1, 0),
        (0, 1, 1, 1),
        (1, 0, 1, 1),
    ]
    for row in pairs:
        assert 0 <= row["jensen_shannon_distance"] <= 1
        assert 0 <= row["output_cka"] <= 1
        assert -1 <= row["ov_cosine"] <= 1


def test_the_same_model_measures_the_same(measured, tmp_path, tokens):
    folder, _ = measured
    measure(tmp_path, random_model(tokens), initial=random_model(tokens, seed=1))
    for name in TABLES:
        assert (tmp_path / f"{name}.parquet").read_bytes() == (folder / f"{name}.parquet").read_bytes()


@pytest.mark.parametrize(
    ("options", "n_heads"),
    [
        ({"n_layers": 1, "n_heads": 1}, 1),
        ({"n_layers": 3, "n_heads": (2, 0, 1), "d_head": 5, "output_biases": True}, 3),
        ({"normalization": "layernorm", "feed_forward": "gelu", "positions": "sinusoidal"}, 4),
        ({"normalization": "rmsnorm", "normalization_place": "post", "biases": True, "positions": "rotary"}, 4),
        ({"n_ctx": 2, "d_value": 11, "positions": "learned"}, 4),
    ],
)
def test_every_setting_has_its_rows(tmp_path, tokens, options, n_heads):
    model = random_model(tokens, **{"d_head": 4, **options})
    measure(tmp_path, model)
    assert len(rows_of(tmp_path, "head_clusters")) == n_heads
    if n_heads == 1:
        assert not (tmp_path / "head_similarity.parquet").exists()
        return
    pairs = rows_of(tmp_path, "head_similarity")
    assert len(pairs) == n_heads * (n_heads - 1) // 2
    assert {row.get("ov_cosine") is None for row in pairs} == {options.get("normalization_place") == "post"}


def test_a_model_without_heads_has_no_rows(tmp_path, tokens):
    measure(tmp_path, random_model(tokens, n_layers=0))
    assert not list(tmp_path.glob("*.parquet"))


@pytest.mark.parametrize("max_pairs", [0, 2])
def test_only_the_most_similar_pairs_are_tried(measured, tmp_path, tokens, max_pairs):
    measure(tmp_path, random_model(tokens), CONFIG.model_copy(update={"max_pairs": max_pairs}))
    pairs = sorted(rows_of(tmp_path, "head_similarity"), key=lambda row: row["jensen_shannon_distance"])
    for i, row in enumerate(pairs):
        names = ("both_effect_nats", "excess_nats", "excess_sem_nats", "excess_chance", "is_redundant")
        assert {row[name] is not None for name in names} == {i < max_pairs}
    everything = sorted(rows_of(measured[0], "head_similarity"), key=lambda row: row["jensen_shannon_distance"])
    names = ("first_effect_nats", "second_effect_nats")
    assert [[row[name] for name in names] for row in pairs] == [[row[name] for name in names] for row in everything]
    for row, full in zip(pairs[:max_pairs], everything, strict=False):
        assert row["excess_chance"] <= full["excess_chance"]  # of fewer tests
        other = {"initial_distance", "initial_excess_nats", "initial_is_redundant", "excess_chance"}
        assert {**row, "excess_chance": None} == {name: full[name] for name in full.keys() - other} | {
            "excess_chance": None
        }


def test_initial_columns_are_those_of_the_first_checkpoint(measured, tmp_path, tokens):
    measure(tmp_path, random_model(tokens, seed=1))
    names = ("jensen_shannon_distance", "excess_nats", "is_redundant")
    initial = ("initial_distance", "initial_excess_nats", "initial_is_redundant")
    now, then = rows_of(tmp_path, "head_similarity"), rows_of(measured[0], "head_similarity")
    assert [[row[name] for name in initial] for row in then] == [[row[name] for name in names] for row in now]


def test_the_nearest_pair_comes_first():
    distances = torch.tensor([[0, 0.3, 0.1], [0.3, 0, 0.2], [0.1, 0.2, 0]])
    assert nearest_first(distances) == [(0, 2), (1, 2), (0, 1)]
    assert nearest_first(torch.zeros(1, 1)) == []


def test_a_single_sequence_decides_nothing(tmp_path, tokens):
    measure(tmp_path, random_model(tokens), CONFIG.model_copy(update={"windows": 1, "reference_windows": 1}))
    for row in rows_of(tmp_path, "head_similarity"):
        assert row["both_effect_nats"] is not None
        assert row["excess_sem_nats"] is row["excess_chance"] is None
        assert row["is_redundant"] is None


def test_weights_that_are_not_finite_are_refused(tmp_path, tokens):
    model = random_model(tokens)
    model.W_E.data[3, 4] = torch.nan
    with pytest.raises(WorkError, match="finite"):
        measure(tmp_path, model)
