import html
import re

import pytest
from empty_warehouse import empty_warehouse
from invented_study import CIRCUITS, D_MODEL, Model, write_measurements, write_warehouse
from markdown_it import MarkdownIt
from rendered import render_report

from headstream.tasks.report.answer import answer_lines
from headstream.tasks.report.circuit_words import _paragraph, circuit_line, induction_paragraphs, skip_trigram_sentence
from headstream.tasks.results.study_results import open_results
from headstream.tasks.results.tables import write_table
from headstream.tasks.words.markdown import MISSING, table_with_spreads

ONE, ZERO = Model(n_layers=1, n_heads=2, induction=0.02), Model(n_layers=0)
HOSTILE = ("<|bos|>", "<b>", "|", "$x$", "`a`", "\\", "*", "_")


@pytest.fixture
def told(tmp_path):
    """A function that tells the circuits of invented models."""

    def tell(*models: Model, without=()) -> list[str]:
        path = write_measurements(tmp_path / f"{len(list(tmp_path.iterdir()))}.duckdb", *models, without=without)
        with open_results(path, "invented") as results:
            return [text for _, text in induction_paragraphs(results)]

    return tell


# The induction circuit in words


def test_a_circuit_is_told_with_its_numbers(told):
    (paragraph,) = told(Model(), ONE, ZERO)
    assert paragraph == (
        "L1H3 of 2L4H is an induction head: on repeated random tokens, 0.35 of its attention, beyond what places alone "
        "earn, goes to what followed earlier copies of the current token (induction_random_period), whose "
        "logit it itself raises by 3.00 (induction_copying_logit). Its keys read L0H0 (previous_token 0.64, z = 36.1) "
        "by K-composition; by z, L0H0 is first of 4 earlier heads; 0.45 of the variance of its attention scores comes "
        "from there. Without L0H0 in its "
        "keys, prefix_matching is 0.05 instead of 0.52, and validation loss rises by 0.200 nats. Reading L0H0 alone, "
        "its QK circuit looks for the query's own token (matching_eigenvalues 0.98); its OV circuit copies what it "
        "finds (copying_eigenvalues 0.95). It reached half of its score by 1.7 M tokens."
    )


def test_a_weak_circuit_is_no_induction_head(told):
    (paragraph,) = told(Model(induction=0.15))
    assert paragraph.startswith(
        "2L4H has no induction head: the nearest to one is L1H3 (induction_random_period 0.15, induction_copying_logit "
        "3.00)."
    )
    assert paragraph.endswith("So all of an induction circuit is there, only weak.")


def circuit(**columns):
    """A row of the query about an induction head whose keys read two writers."""
    row = {
        "label": "2L4H", "seed": 0, "n_models": 1, "n_found": 1, "is_complete": True, "reader": "L1H3",
        "reader_role": "induction", "induction_random_period": 0.4, "induction_copying_logit": 2.0,
        "copying_eigenvalues": 0.9, "copies": True,
        "n_earlier": 4, "kind": "K", "writers": ["L0H2", "L0H0"], "n_writers": 2, "writer_attention": [0.61, 0.5],
        "writer_offsets": [1, 1], "writer_z": [20.0, 10.0], "score": 0.4, "z_rank": 1,
        "also_compose": [], "also_compose_attention": None, "also_compose_without": None,
        "matching_eigenvalues": 0.9, "matches": True,
        "score_share": None, "prefix_matching": 0.44, "prefix_matching_without": 0.07,
        "prefix_matching_without_each": [0.27, 0.31], "depends": True, "is_circuit": True, "loss_effect_nats": 0.1,
        "carriers": [], "is_carried": False, "carried_copying_eigenvalues": None,
        "copying_logit_without_carriers": None, "virtual_head": None, "virtual_induction_random_period": None,
        "virtual_copying_logit": None, "repeat_gain_nats": 3.35, "predicts_repeats": True, "formed_tokens": None,
    }  # fmt: skip
    return row | columns


def paragraph_of(**columns):
    return _paragraph(circuit(**columns))


def test_writers_are_told_together_and_alone():
    assert (
        "Its keys read L0H2 (previous_token 0.61, z = 20.0) and L0H0 (0.50, z = 10.0) by K-composition; by z, L0H2 is "
        "first of 4 earlier heads. Without both in its keys, prefix_matching is 0.07 instead of 0.44 (0.27 without "
        "L0H2 alone, the larger effect of the two), and validation loss rises by 0.100 nats."
    ) in paragraph_of()
    assert (
        "Without both in its keys, prefix_matching is 0.30 instead of 0.44 (0.27 without L0H2 alone, the larger "
        "effect of the two), more than half: it can do without; validation loss rises"
    ) in paragraph_of(prefix_matching_without=0.3, depends=False)
    assert circuit_line(circuit(), None) == (
        "Keys of L1H3 read L0H2 (previous_token 0.61, z = 20.0) and L0H0 (0.50, z = 10.0) by K-composition: without "
        "them there, prefix_matching is 0.07 instead of 0.44."
    )


def test_a_writer_that_looks_hardest_elsewhere_is_told_as_such():
    reading = (
        "Its keys read L0H2 (previous_token 0.61, z = 20.0) and L0H0 (0.50, though it looks hardest 2 tokens back, z ="
    )
    assert reading in paragraph_of(writer_offsets=[None, 2])
    assert "hardest" not in paragraph_of(kind="Q", writer_offsets=[9, 9])


def test_pointers_are_told_by_queries():
    told = paragraph_of(kind="Q", matching_eigenvalues=None, matches=None, is_complete=None)
    assert "Its queries read L0H2 (duplicate_token 0.61, z = 20.0) and L0H0 (0.50, z = 10.0) by Q-composition" in told
    assert "eigenvalues" not in told


def test_heads_that_compose_and_are_no_writers_are_named():
    one = {"also_compose": ["L0H1"], "also_compose_attention": [0.24], "also_compose_without": [0.32]}
    told = "; not counted among them, L0H1 (previous_token 0.24; without it alone, prefix_matching is 0.32)"
    assert f"{told} also composes so" in paragraph_of(**one)
    two = {"also_compose_attention": [0.24, 0.1], "also_compose_without": [0.32, None]}
    two |= {"also_compose": ["L0H1", "L0H3"]}
    assert f"{told} and L0H3 (previous_token 0.10) also compose so" in paragraph_of(**two)


def test_anti_induction_is_called_so():
    told = paragraph_of(reader_role="anti-induction", induction_copying_logit=-2.0)
    assert told.startswith(
        "L1H3 of 2L4H is an anti-induction head: on repeated random tokens, 0.40 of its attention, beyond what"
    )
    assert "whose logit it itself lowers by 2.00 (induction_copying_logit)." in told


def test_of_several_seeds_one_is_described_and_said_to_be_it():
    told = paragraph_of(seed=1, n_models=3, n_found=2)
    assert told.startswith("L1H3 of seed 1 of 2L4H is an induction head")
    assert told.endswith("An induction circuit was found in 2 of 3 seeds.")


def test_an_induction_head_without_a_circuit_is_told_as_such(told):
    for without in ({"composed": D_MODEL**-0.5}, {"previous_token": 0.29}):
        (paragraph,) = told(Model(**without))
        assert paragraph.endswith(
            "Of 4 earlier heads, its keys read none that attends to the token before, and by its queries it depends on "
            "none that attends to earlier copies of the current token: no induction circuit was found. It predicts "
            "repeats all the same (repeat_gain 1.50 nats): no circuit that was looked for explains how."
        )


def test_what_carries_the_copy_is_told():
    carried = {"carriers": ["L0H1"], "is_carried": True, "copying_logit_without_carriers": -0.001}
    told = paragraph_of(**carried, carried_copying_eigenvalues=1.0, copies=False, copying_eigenvalues=0.1)
    assert (
        "its OV circuit does not clearly copy (copying_eigenvalues 0.10), but it moves what L0H1 wrote there: without "
        "that in its values, it adds 0.00 to the logit of what follows instead of 2.00; of L0H1 and it in a row, "
        "copying_eigenvalues is 1.00."
    ) in told


def test_without_a_circuit_it_is_told_what_else_predicts_repeats():
    nothing = {"is_circuit": False, "is_complete": False, "reader_role": "other", "n_writers": 0, "writers": []}
    assert paragraph_of(**nothing).endswith(
        "It predicts repeats all the same (repeat_gain 3.35 nats): no circuit that was looked for explains how."
    )
    virtual = {"virtual_head": "L0H1 and L1H2", "virtual_induction_random_period": 0.98, "virtual_copying_logit": 9.5}
    assert paragraph_of(**nothing, **virtual).endswith(
        "It predicts repeats (repeat_gain 3.35 nats) by a virtual head, L0H1 and L1H2 in a row: 0.98 of its "
        "attention, beyond what places alone earn, goes to what followed earlier copies, whose logit it raises by 9.50."
    )
    assert "predicts repeats" not in paragraph_of(**nothing, predicts_repeats=False)
    assert "predicts repeats" not in paragraph_of(**virtual)  # there, an induction head does


def test_a_first_layer_has_no_circuit(told):
    (paragraph,) = told(Model(induction=0.0))
    assert paragraph.startswith("2L4H has no induction head: the nearest to one is L0H2")
    assert "so it has no earlier head to read: there is no induction circuit." in paragraph
    assert told(ONE, ZERO) == [
        "No model has two layers, so none can have an induction circuit: keys need an earlier head to read."
    ]


def test_what_was_not_measured_is_missing(told):
    (paragraph,) = told(Model(), without={"heads"})
    assert "is missing: no head's induction_random_period was measured" in paragraph
    (paragraph,) = told(Model(), without=set(CIRCUITS))
    assert "Whether its keys or queries read earlier heads was not measured." in paragraph
    without = {"joint_checks.loss_effect_nats", "compositions.matching_eigenvalues", "heads.previous_token"}
    (paragraph,) = told(Model(), without=without)
    assert f"Its keys read L0H0 (previous_token {MISSING}, z = 36.1) by K-composition" in paragraph
    assert (
        "prefix_matching is 0.05 instead of 0.52, and what that does to the loss is missing. matching_eigenvalues is "
        "missing;" in paragraph
    )
    assert not re.search(r"None|nan", paragraph)


def test_the_best_of_each_depth_is_told(told):
    models = [Model(n_layers=n, n_heads=heads, induction=0.1 * n + 0.01 * heads) for n in (2, 3) for heads in (2, 3)]
    first, second, more = told(*models)
    assert first.startswith("L2H2 of 3L3H is")
    assert second.startswith("L1H2 of 2L3H is")
    assert more == "2 more kinds of model are not described: see the SQL."


def test_the_answer_names_the_circuit_of_one_seed(tmp_path):
    path = write_measurements(tmp_path / "w.duckdb", *(Model(seed=seed) for seed in (0, 1)))
    with open_results(path, "invented") as results:
        *_, line = answer_lines(results)
    assert line.startswith("In seed 1, keys of L1H3 read L0H0 (previous_token 0.64, z = 36.1) by K-composition")


# Skip-trigrams


def test_skip_trigrams_are_right_or_bugs_or_neither(tmp_path):
    rows = [  # source, output, probability after the pair, probability anywhere, bug
        ("a", "·a", 0.05, 0.02, False),  # 5 of 100 times, more than twice as often as anywhere
        ("a", "b", 0.04, 0.01, False),  # only 4 times
        ("c", "d", 0.05, 0.03, False),  # not twice as often
        ("·", "·", 0.0, 0.03, True),
    ]
    named = ("source", "output", "corpus_probability", "output_probability", "is_bug")
    with empty_warehouse() as connection:
        rows_of_head = [
            {"model_id": "m", "step": step, "layer": 0, "head": 1, "rank": rank, "destination": "x", "n_pairs": 100}
            | dict(zip(named, row, strict=True))
            for step, of_step in ((0, rows[:1]), (9, rows))  # the last is shown
            for rank, row in enumerate(of_step)
        ]
        file = write_table(tmp_path, "skip_trigrams", rows_of_head)
        connection.execute("INSERT INTO skip_trigrams BY NAME FROM read_parquet(?)", [str(file)])
        found = connection.execute(
            "SELECT label, skip_trigram, verdict, copies, source_rank, rank_of_source"
            " FROM skip_trigram_summary ORDER BY rank"
        ).fetchall()
    assert found == [
        ("L0H1", "a … x → ·a", "right", True, 0, 0),
        ("L0H1", "a … x → b", "neither", False, 0, 1),
        ("L0H1", "c … x → d", "neither", False, 1, 0),
        ("L0H1", "· … x → ·", "bug", True, 2, 0),
    ]


def test_skip_trigrams_are_those_of_the_model_with_one_layer(tmp_path):
    with open_results(write_measurements(tmp_path / "w.duckdb", Model(), ONE), "invented") as results:
        assert {row["model"] for row in results.rows("skip_trigrams")} == {"1L2H"}
        assert skip_trigram_sentence(results) == (
            "Of 6 skip-trigrams of 1L2H, the strongest of each head, 2 are right and 2 are bugs, which 2 of its 2 "
            "heads have; 2 copy their source."
        )
    with open_results(write_measurements(tmp_path / "v.duckdb", Model(), ZERO), "invented") as results:
        assert {row["model"] for row in results.rows("skip_trigrams")} == {"2L4H"}
    with open_results(write_measurements(tmp_path / "u.duckdb", ZERO), "invented") as results:
        assert skip_trigram_sentence(results) == "No model has heads, so there are no skip-trigrams."


# The section


def test_texts_of_tokens_are_shown_as_they_are(tmp_path):
    path = write_measurements(tmp_path / "w.duckdb", Model(n_layers=1, n_heads=1, passage=HOSTILE))
    with open_results(path, "invented") as results:
        page = "\n\n".join(table_with_spreads(results.rows(query)) for query in ("skip_trigrams", "skip_trigram_bugs"))
    shown = html.unescape(re.sub(r"<[^>]*>", "\n", MarkdownIt("commonmark").enable("table").render(page)))
    assert "\n<b> … `a` → <b>\n" in shown
    assert "\n| … `a` → $x$\n" in shown
    assert "\n| … \\ → $x$\n" in shown, "the right output of the bug"
    assert "\n| … `a` → *\n" in shown, "the right destination"
    assert "$x$" not in page


def test_the_section_holds_without_any_circuits(tmp_path):
    path = write_warehouse(tmp_path / "w.duckdb", Model(), ONE, without=set(CIRCUITS))
    render_report(path, "invented", tmp_path)
    text = (tmp_path / "report.md").read_text()
    section = text.partition("\n## Circuits\n")[2].partition("\n## ")[0]
    assert re.findall("(?m)^###+ (.*)$", section) == ["The induction circuit", "Room in the stream"]
    assert text.partition("What is not shown")[2].count("- No picture: ") >= 6
    assert not re.search(r"\b(None|nan|NULL)\b", section)


def test_identities_say_how_exactly_they_hold(tmp_path):
    with open_results(write_measurements(tmp_path / "w.duckdb", Model(), ONE, ZERO), "invented") as results:
        paths, source = results.rows("identities")
    assert (paths["models"], paths["holds_within"], paths["worst_model"]) == (3, "2e-6", "2L4H")
    assert (source["models"], source["holds_within"]) == (2, "2e-15")
