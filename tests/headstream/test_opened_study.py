"""A study opened in Python: its frames and models, and mistakes in one line."""

import math
import subprocess
import sys

import pytest

import headstream as hs
from headstream.opened_study import OF_STUDY
from headstream.tasks.results.tables import tables


def test_open_says_what_was_found(home):
    results = hs.open("ours")
    assert repr(results).startswith("Study ours: Does the door open?\n- ")
    assert repr(results).endswith("\nModels: 2L2-3H seed=0; 2L2-3H seed=1")
    assert hs.studies()[["study", "n_models", "n_failed"]].values.tolist() == [["ours", 2, 0]]


def test_frames_are_tables_and_views_of_the_study(home):
    results = hs.open("ours")
    heads = results.frame("heads")
    assert set(heads.model_id) == set(results.models.model_id)
    assert {(layer, head) for layer, head in heads[["layer", "head"]].values} == {
        (0, 0), (0, 1), (1, 0), (1, 1), (1, 2),
    }  # fmt: skip
    assert results.frame("corpora").vocabulary.tolist() == [270]
    assert results.frame("labelled_models").label.tolist() == ["2L2-3H"] * 2
    assert results.sql("SELECT count(*) AS n FROM models").n.tolist() == [2]


def test_every_table_has_a_column_that_says_of_which_study_it_is(home):
    without = {name for name, table in tables().items() if not set(OF_STUDY) & set(table.schema.names)}
    assert without == {"artifacts", "warehouse"}


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: hs.open("our"), "there is no study"),
        (lambda: hs.open("quick"), r"'quick' has not run yet. Run it: headstream.run\('quick'\)."),
        (
            lambda: hs.open("ours").model("2L2-3H"),
            "'2L2-3H' matches 2 models; name exactly one of 2L2-3H seed=0; 2L2-3H seed=1",
        ),
        (
            lambda: hs.open("ours").model("2L4H"),
            "'2L4H' matches 0 models; name exactly one of 2L2-3H seed=0; 2L2-3H seed=1",
        ),
        (lambda: hs.open("ours").model(sed=0), "setting 'sed' in `models`. Did you mean 'seed'?"),
        (lambda: hs.open("ours").model(seed=0, step=7), r"step 7. Choose one of 0, \d+, \d+\."),
        (lambda: hs.open("ours").frame("head"), "view 'head' in the warehouse. Did you mean 'heads'?"),
        (lambda: hs.open("ours").frame("heads; DROP"), "there is no table or view"),
        (lambda: hs.open("ours").sql("SELECT nothing FROM heads"), 'the query failed: Binder Error: .*"nothing"'),
        (lambda: hs.open("ours").sql("DELETE FROM heads"), "read-only"),
        (lambda: hs.open("ours").sql(""), "returns no rows"),
        (lambda: hs.open(3), "a study must be text, got 3. Write it in quotation marks."),
        (lambda: hs.open(["ours"]), "a study must be text"),
        (lambda: hs.open("ours").model(3), "a model's name must be text, got 3"),
        (lambda: hs.open("ours").model(["2L2-3H"]), "a model's name must be text"),
        (lambda: hs.open("ours").model(seed=[0]), "matches 0 models"),
        (
            lambda: hs.open("ours").model(seed=0, step=0, tokens=3),
            "give either a step or tokens, got step=0 and tokens=3",
        ),
        (lambda: hs.open("ours").model(seed=0, tokens=math.inf), "tokens must be a finite number, got inf"),
        (lambda: hs.open("ours").frame(None), "a table's name must be text, got None"),
        (lambda: hs.open("ours").sql(3), "a query must be text, got 3"),
    ],
)
def test_a_mistake_is_one_line(home, ask, message):
    with pytest.raises(hs.UserError, match=message) as error:
        ask()
    assert "\n" not in str(error.value)
    assert error.value._render_traceback_() == [f"UserError: {error.value}"]  # all that a notebook shows


def test_a_model_is_named_by_label_place_id_or_settings(home):
    results = hs.open("ours")
    second = results.models.iloc[1]
    for name, settings in [("2L2-3H", {"seed": 1}), (second.cell, {}), (second.model_id, {}), (None, {"seed": 1})]:
        assert results.model(name, **settings).model_id == second.model_id
    assert results.model(heads_per_layer=[2, 3], seed=0).model_id == results.models.model_id[0]


def test_torch_is_loaded_once_a_model_is_opened(home):
    program = """
import sys
import headstream as hs
assert not {"pandas", "duckdb", "pydantic", "numpy"} & {*sys.modules}, "importing takes a second"
results = hs.open("ours")
assert not {"torch", "matplotlib", "prefect"} & {*sys.modules}, "torch takes a second"
results.model(seed=0)
assert "torch" in sys.modules
assert not {"matplotlib", "prefect"} & {*sys.modules}
"""
    subprocess.run([sys.executable, "-c", program], check=True)
