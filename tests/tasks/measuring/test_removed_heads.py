"""Heads that training removed, by pruning or by closing their gates, are no heads: nothing is measured on them."""

import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from empty_warehouse import empty_warehouse
from little_analysis import inputs_of
from test_every_stage import CONFIG, SMALL
from tiny import tiny_tokens

from headstream.models.architecture import Architecture
from headstream.models.heads.attention_flow import aggregate_attention
from headstream.models.heads.head import heads_of, mask_without, removed_heads
from headstream.models.heads.removal import remove_heads
from headstream.models.nodes import Head
from headstream.models.transformer import Transformer
from headstream.tasks.measuring.head_rows import without_rows_on
from headstream.tasks.measuring.measure import measure
from headstream.tasks.results.tables import tables_of
from headstream.tasks.study.analyses import ANALYSES
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training.checkpoints import load_model, save_checkpoint, write_model_card

LEFT = [Head(0, 1), Head(1, 0), Head(1, 2)]
REMOVED = {Head(0, 0), Head(0, 2), Head(1, 1)}
PLACES = [("layer", "head"), ("first_layer", "first_head"), ("second_layer", "second_head")]
PLACES += [("writer_layer", "writer_head"), ("reader_layer", "reader_head")]
LABELS = {str(head) for head in REMOVED}


def whole_model(tokens, gates="none"):
    architecture = Architecture(**SMALL | {"n_heads": 3, "gates": gates})
    return Transformer(architecture, tokens.vocabulary).initialize(torch.Generator().manual_seed(1))


def without(model, removed):
    """As training with prune_to leaves it, or as gates that close do."""
    for layer, head in removed:
        attention = model.layers[layer].attention
        (attention.gates.log_alpha if attention.gates else attention.W_O).data[head] = -9.0 if attention.gates else 0.0
    return model


@pytest.fixture(scope="module", params=["none", "hard_concrete"])
def measured(request, tmp_path_factory):
    """Every table of a model that had all heads at first, one less in the middle and three at the end."""
    tokens, folder = Tokens.open(tiny_tokens()), tmp_path_factory.mktemp("removed")
    write_model_card(folder, whole_model(tokens, request.param), 1)
    for step, removed in ((0, []), (1, [Head(0, 0)]), (2, REMOVED)):
        save_checkpoint(folder, without(whole_model(tokens, request.param), removed), step)
    for stage in ANALYSES:
        (folder / stage).mkdir()
        inputs = inputs_of(stage, folder, tokens.folder)
        measure(stage, CONFIG, "m", inputs, folder / stage, lambda fraction: None)
    return folder


def rows_of(folder, stage, table):
    return pq.read_table(folder / stage / f"{table}.parquet").to_pylist()


def test_the_heads_there_are_are_those_that_write(measured):
    model = load_model(measured, 2)
    assert heads_of(model) == LEFT
    assert removed_heads(model) == REMOVED
    assert removed_heads(load_model(measured, 0)) == set()


def test_no_row_is_about_a_removed_head(measured):
    n_tables = 0
    for path in measured.glob("*/*.parquet"):
        for row in pq.read_table(path).to_pylist():
            gone = {Head(0, 0)} if row.get("step") == 1 else set() if row.get("step") == 0 else REMOVED
            for place in PLACES:
                assert tuple(row.get(name) for name in place) not in gone, path
            if gone == REMOVED:
                texts = {text for value in row.values() if isinstance(value, str) for text in value.split(" > ")}
                listed = {item for value in row.values() if isinstance(value, list) for item in value}
                assert not LABELS & (texts | listed), path
        n_tables += 1
    assert n_tables > 20


def test_which_columns_name_heads_is_what_the_schema_marks():
    (table,) = tables_of("""
CREATE TABLE findings (
    model_id    VARCHAR,    -- models.model_id
    step        INTEGER,    -- steps taken
    number      INTEGER,    -- counted from 0
    from_layer  INTEGER,    -- layer of the head that writes
    from_head   INTEGER,    -- counted from 0 within its layer [head of from_layer]
    reader      VARCHAR,    -- what reads it [node]
    through     VARCHAR[],  -- what lies between [node]
    twin_id     VARCHAR,    -- models.model_id of another model
    twin_layer  INTEGER,    -- layer of the head there
    twin_head   INTEGER,    -- counted from 0 within its layer [head of twin_layer in twin_id]
    remark      VARCHAR,    -- any text
    PRIMARY KEY (model_id, step, number)
);
""").values()
    kept = {"step": 2, "from_layer": 0, "from_head": 1, "reader": "logits", "through": ["L1H0", "L0MLP"]}
    rows = [
        kept | other
        for other in (
            {},
            {"from_layer": 1, "from_head": 1},
            {"reader": "L0H0"},
            {"through": ["L1H0", "L1H1"]},
            {"through": None, "reader": "embedding"},
            {"through": [], "twin_id": "n", "twin_layer": 1, "twin_head": 1, "remark": "L0H0"},
            {"step": 0, "reader": "L0H0"},
            {"from_layer": None, "from_head": None},
        )
    ]
    frame = pd.DataFrame([row | {"number": number} for number, row in enumerate(rows)])
    left = without_rows_on(frame, table, lambda step: frozenset(REMOVED if step == 2 else ()))
    assert sorted(left.number) == [0, 4, 5, 6, 7]


def test_scores_end_where_a_head_does(measured):
    heads = {(row["step"], row["layer"], row["head"]) for row in rows_of(measured, "behaviour", "heads")}
    assert {step for step, layer, head in heads if (layer, head) == (0, 0)} == {0}
    assert {step for step, layer, head in heads if (layer, head) == (1, 1)} == {0, 1}
    assert {step for step, layer, head in heads if (layer, head) == (0, 1)} == {0, 1, 2}


def test_only_what_is_there_can_be_pruned(measured):
    rows = rows_of(measured, "pruning", "pruning")
    for procedure in ("one_shot", "iterative", "iterative_retrain", "random"):
        assert max(row["n_pruned"] for row in rows if row["procedure"] == procedure) == 3
    assert all(row["fraction_pruned"] == row["n_pruned"] / 3 for row in rows)
    gates = rows_of(measured, "pruning", "gates")
    assert {(row["layer"], row["head"]) for row in gates} == set(LEFT)
    for sweep in rows_of(measured, "pruning", "gate_sweeps"):
        assert sweep["n_open"] <= 3
        assert sweep["expected_open"] <= 3
    for kept in rows_of(measured, "pruning", "pruned_models"):
        expected = 3 if kept["procedure"] == "training" else 3 - kept["n_pruned"]
        assert sum(kept["heads_per_layer"]) == expected


def test_importance_ranks_what_is_there(measured):
    ranks = {}
    for row in rows_of(measured, "importance", "importance"):
        ranks.setdefault(row["method"], []).append(row["rank"])
    assert all(sorted(own) == [0, 1, 2] for own in ranks.values() if None not in own)


def test_pairs_are_of_what_is_there(measured):
    assert len(rows_of(measured, "redundancy", "head_similarity")) == 3
    assert sorted(row["leaf"] for row in rows_of(measured, "redundancy", "head_clusters")) == [0, 1, 2]


def test_attention_is_summed_up_over_what_is_there(measured):
    model, passage = load_model(measured, 2), torch.arange(1, 9)
    whole = aggregate_attention(model, passage)
    smaller = aggregate_attention(remove_heads(model, mask_without(model, REMOVED)), passage)
    for method, patterns in whole.items():
        torch.testing.assert_close(patterns, smaller[method], msg=method)


def test_the_share_that_can_be_removed_is_of_what_is_there(measured):
    with empty_warehouse() as connection:
        connection.execute("INSERT INTO models BY NAME SELECT 'm' AS model_id, 6 AS total_heads")
        path = str(measured / "pruning" / "pruning.parquet")
        connection.execute("INSERT INTO pruning BY NAME FROM read_parquet(?)", [path])
        found = connection.execute(
            "SELECT DISTINCT total_heads, fraction_within_1_percent = within_1_percent / 3 FROM prunable_heads"
        ).fetchall()
    assert found == [(3, True)]
