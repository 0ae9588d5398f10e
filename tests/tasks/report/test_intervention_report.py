"""What a report says of interventions: the numbers of its SELECTs, and the curves with and without."""

import pytest
from claimed_studies import FORMED, TRAINED, Tables, trained
from decided_claims import fill
from empty_warehouse import empty_warehouse

from headstream.tasks.report.answer import answered_by
from headstream.tasks.report.intervention_words import intervention_lines
from headstream.tasks.report.sections.interventions.with_and_without import with_and_without
from headstream.tasks.results.study_results import open_results

STUDY = "needs"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Three seeds: the writer's silence doubles the tokens to form, but in seed 2 none forms; others hasten it."""
    folder = tmp_path_factory.mktemp("needs")
    tables = Tables(STUDY)
    for seed in range(3):
        trained(tables, seed)
        forms = {"formed": 2 * FORMED} if seed < 2 else {"formed": 10 * TRAINED, "score": 0.1}
        trained(tables, seed, done="silence L0H0", **forms)
        trained(tables, seed, done="silence L0H1", formed=FORMED / 2)
    trained(tables, 0, formed=10 * TRAINED, score=0.01, done="cut L0 -> L1.K")
    tables["studies"][0]["config"] = "{}"
    tables["study_models"].append(
        {"study": STUDY, "model_id": "none-1", "cell": "seed=9", "status": "left out", "failure": "left out: no head"}
    )
    path = folder / "w.duckdb"
    with empty_warehouse(path) as connection:
        fill(connection, folder, tables)
    with open_results(path, STUDY) as results:
        yield results


def test_the_table_has_delays_over_seeds_and_counts_those_that_never_form(results):
    rows = {row["what"]: row for row in results.rows("interventions")}
    assert [*rows] == ["cut L0 -> L1.K", "silence another head of layer 0", "silence the writer"]
    writer, other, cut = rows["silence the writer"], rows["silence another head of layer 0"], rows["cut L0 -> L1.K"]
    assert (writer["formed"], other["formed"], cut["formed"]) == ("2 of 3", "3 of 3", "0 of 1")
    assert writer["delay"] == pytest.approx(1, abs=1e-6)
    assert writer["delay_ci95"] is None
    assert other["delay"] == pytest.approx(-1, abs=1e-6)
    assert other["delay_ci95"] == pytest.approx(0, abs=1e-6)
    assert cut["delay"] is None
    assert cut["induction"] == pytest.approx(0.01)


def test_what_never_forms_has_no_delay_but_one_that_is_at_least_so_long(results):
    effects = results.frame("intervened_models")
    never = effects[effects.not_formed]
    assert never.tokens_to_form.isna().all()
    assert never.delay.isna().all()
    assert sorted(never.done) == ["cut L0 -> L1.K", "silence L0H0"]
    assert never.delay_at_least.tolist() == pytest.approx([2, 2])  # TRAINED is four times FORMED
    assert effects[~effects.not_formed].delay_at_least.isna().all()


def test_between_checkpoints_tokens_are_interpolated_by_their_logarithms(tmp_path):
    tables = Tables("between")
    tables["studies"][0]["config"] = "{}"
    trained(tables, 0)
    own = trained(tables, 0, formed=10 * TRAINED, done="silence L0H1")
    tables.add("evaluations", own, step=5, tokens=FORMED)
    tables.add("heads", own, step=5, layer=1, head=0, induction_random_period=0.1)  # of 0.2; at TRAINED 0.4
    with empty_warehouse(tmp_path / "w.duckdb") as connection:
        fill(connection, tmp_path, tables)
        ((found,),) = connection.execute("SELECT tokens_to_form FROM intervention_effects").fetchall()
    assert found == pytest.approx(FORMED * (TRAINED / FORMED) ** (1 / 3))


def test_the_picture_has_a_panel_for_what_was_done_and_says_what_delays(results):
    (picture,) = with_and_without(results)
    titles = [axes.get_title() for axes in picture.figure.axes if axes.get_title()]
    assert [" ".join(title.split()) for title in titles] == [
        "cut L0 -> L1.K", "silence another head of layer 0", "silence the writer",
    ]  # fmt: skip
    lines = [len(axes.lines) for axes in picture.figure.axes if axes.lines]
    assert lines == [2, 6, 6]
    assert "it took: 2 times the tokens with silence the writer, of the 2 of 3 models that form;" in picture.sentence
    assert "0.5 (0.5 to 0.5) times the tokens with silence another head of layer 0;" in picture.sentence
    assert "does an induction head form within the training: cut L0 -> L1.K." in picture.sentence


def test_the_answer_is_of_models_as_trained_and_says_what_kept_heads_from_forming(results):
    groups = results.rows("answer")
    assert [group["is_intervened"] for group in groups] == sorted(group["is_intervened"] for group in groups)
    assert answered_by(results) == next(group["label"] for group in groups if not group["is_intervened"])
    (told,) = intervention_lines(results)
    assert "no induction head formed with cut L0 -> L1.K (0 of 1);" in told
    assert "only in some models with silence the writer (2 of 3);" in told
    assert "silence another head of layer 0 took 0.5 (0.5 to 0.5) times the tokens." in told


def test_models_that_were_left_out_are_named(results):
    assert results.rows("interventions_left_out") == [{"cell": "seed=9", "why": "left out: no head"}]
