import html
import itertools
import re
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from invented_study import Model, write_measurements, write_warehouse
from markdown_it import MarkdownIt
from rendered import render_report

from headstream.tasks.errors import UserError, WorkError
from headstream.tasks.graph import artifact_specs
from headstream.tasks.graph.artifact_specs import report_spec
from headstream.tasks.machines.child_process import ProcessDied, run_side_by_side
from headstream.tasks.report import glossary
from headstream.tasks.report.answer import MAX_LINES, N_FIGURES_OF_THE_ANSWER, answer_lines
from headstream.tasks.report.publishing import publish_report
from headstream.tasks.results.sql import run_sql
from headstream.tasks.results.study_results import open_results, query_files
from headstream.tasks.storage.artifact import Artifact, Spec
from headstream.tasks.storage.store import Store
from headstream.tasks.words.markdown import (
    Markdown,
    as_markdown,
    code_block,
    escaped,
    readable,
    short_count,
    table_with_spreads,
)
from headstream.tasks.words.plain_text import terminal_safe

TWO, ONE, ZERO = (
    Model(),
    Model(n_layers=1, induction=0.012, previous_token=0.3, repeat_gain=0.21, loss=2.78),
    Model(n_layers=0, repeat_gain=0.0, loss=4.02),
)
HOSTILE = "a|b `c` <script>alert(1)</script> $x$ *d* [e](f) &amp; ~g~ \\ # \n\n# h \u202e\x07"
to_html = MarkdownIt("commonmark").enable("table").render


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory):
    return write_warehouse(tmp_path_factory.mktemp("quick") / "w.duckdb", TWO, ONE, ZERO)


@pytest.fixture(scope="module")
def quick(warehouse, tmp_path_factory):
    """A rendered report of three models, and its facts."""
    folder = tmp_path_factory.mktemp("report")
    heard: list[float] = []
    facts = render_report(warehouse, "invented", folder, heard.append)
    assert len(heard) > 10
    assert heard == sorted(heard)
    assert heard[-1] == 1
    return folder, facts


def rendered(tmp_path: Path, *models: Model, **options) -> tuple[str, dict]:
    write_warehouse(tmp_path / "w.duckdb", *models, **options)
    (tmp_path / "report").mkdir()
    facts = render_report(tmp_path / "w.duckdb", "invented", tmp_path / "report")
    return check_report(tmp_path / "report"), facts


def check_report(folder: Path) -> str:
    """What holds for any report: its images are there and are XML, and nothing leaks out of Python."""
    text = (folder / "report.md").read_text()
    drawn = {f"figures/{path.name}" for path in folder.glob("figures/*")}
    assert set(re.findall(r"!\[[^]]*\]\(([^)]*)\)", text)) == drawn
    for name in drawn:
        ElementTree.parse(folder / name)
    assert not re.search(r"\b(None|nan|NaN|NULL|NaT)\b", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    return text


# The whole report


def test_a_report_says_and_shows_everything(quick):
    folder, facts = quick
    text = check_report(folder)
    headings = re.findall(r"^## (.*)", text, flags=re.MULTILINE)
    assert headings[:2] == ["Models", "Learning"]
    assert headings[-2:] == ["Provenance", "Glossary"]
    assert {"Heads", "Attention on a passage"} <= set(headings)
    assert "Every import" not in text
    names = {path.stem for path in folder.glob("figures/*")}
    assert names == {
        "learning_curves", "context_over_training", "loss_in_context", "head_map_1", "head_map_2",
        "head_trajectories", "attention_induction", "attention_previous_token", "circuit_formation", "composition_1",
        "induction_circuit", "loss_over_size",
        "score_terms_1", "eigenvalues_1", "eigenvalues_2", "path_terms_1", "path_terms_2", "bigram_fit",
        "attention_gallery", "attention_aggregates", "importance_1", "importance_2", "importance_agreement_1",
        "ablations_1", "ablations_2", "pruning_1", "pruning_2", "similarity_1", "similarity_2", "probes_1", "probes_2",
    }  # fmt: skip
    assert facts["study"] == "invented"
    assert len(facts["answer"]) == MAX_LINES
    prose = re.sub(r"\[([^][]+)\]\(explorer\.html#[^)]+\)", r"\1", text)  # without the links to heads' cards
    plain = re.sub(r"\[([^][]+)\](\[[^][]+\])?(?!\()", r"\1", prose)  # and to the glossary
    assert "[L1H3](explorer.html#2L4H/L1H3): on repeated" in text
    for line in facts["answer"]:
        assert f"- {escaped(line)}\n" in plain
    assert "> Does it?" in text
    assert text.count("<details>") == text.count("</details>")


def test_a_report_is_short_enough_to_be_read(quick):
    text = (quick[0] / "report.md").read_text()
    assert len(text.splitlines()) < 700
    first_screen = text.partition("**Findings**")[0]
    assert len(first_screen.splitlines()) < 25


def test_the_glossary_explains_every_word_that_looks_like_code(quick):
    """At its first use in prose, where it is a term, and at the end."""
    page, _, glossary = (quick[0] / "report.md").read_text().partition("\n## Glossary\n")
    prose = re.sub(r"```.*?```|`[^`]*`|\[\w+\]\(queries/[^)]*\)|\]\([^)]*\)", "", page, flags=re.DOTALL)
    explained = set(re.findall(r"(?m)^\| ([^|]+) \| [^|]+ \|$", glossary))
    spoken = set(re.findall(r"(?<![\w=])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?!\w)", prose))
    assert spoken - explained == {"claim_configurations", "head_matches", "score_terms"}, "tables"
    linked = dict(re.findall(r'(?m)^\[([^]]+)\]: #glossary "([^"]+)"$', glossary))
    assert {"repeat_gain", "prefix_matching", "induction head"} <= linked.keys() <= explained
    sentences = re.sub("(?m)^[|#!<>].*$", "", prose)
    for term in linked:
        use = re.search(rf"(?<![\w-]){re.escape(term)}(?![\w-])", sentences)
        assert use is None or sentences[use.start() - 1] == "[" or f"][{term}]" in sentences, term
    assert to_html(page + glossary).count('title="by how many nats the loss falls on random tokens') == 1


@pytest.mark.parametrize(
    ("page", "explained"),
    [
        ("It rose by 2 nats.\n", ["nats"]),
        ("The copying heads went.\n", ["copying head"]),
        ("A copying head is worth 2 nats.\n", ["copying head", "nats"]),
    ],
)
def test_a_page_is_given_a_glossary_of_basics_or_terms_alone(monkeypatch, page, explained):
    words = {"basics": {"nats": "a unit"}, "terms": {"copying head": "it repeats"}}
    monkeypatch.setattr(glossary, "meanings", lambda: words)
    own = glossary.with_glossary(page).partition("\n## Glossary\n")[2]
    assert re.findall(r"(?m)^\| (.+?) \| (?:a unit|it repeats) \|$", own) == explained


def test_a_page_without_words_to_explain_has_no_glossary(monkeypatch):
    monkeypatch.setattr(glossary, "meanings", lambda: {"basics": {"nats": "a unit"}, "terms": {"head": "it reads"}})
    assert glossary.with_glossary("Nothing differs.\n") == "Nothing differs.\n"


def test_findings_come_right_after_the_answer_and_its_figures(quick):
    text = (quick[0] / "report.md").read_text()
    places = [text.index(what) for what in ("**The answer**", "![", "**Findings**", "## Models")]
    assert places == sorted(places)
    assert text.partition("**Findings**")[0].count("![") == N_FIGURES_OF_THE_ANSWER
    decided, undecided, described, how, untested = text.partition("**Findings**")[2].split("<details><summary>")[:5]
    framework = "A Mathematical Framework for Transformer Circuits"
    page = "https://transformer-circuits.pub/2021/framework/index.html"
    assert "Nothing is decided yet: each of the " in decided
    assert re.match(r"\d+ undecided</summary>\n\n- ", undecided)
    source = f"([Elhage et al. 2021, {framework}, Term Importance Analysis]({page}); [more]"
    assert f"; needs 3 seeds; must be &lt; 0.2 {source}" in undecided
    assert re.search(r"times random, 1 seed of 2 layers.*?; 1 for random weights \(\[", described)
    assert how.startswith("How they are decided; self-checks: 2 of 2 pass</summary>")
    assert (
        "more dimensions are written than the stream has: lacks models with heads and feed-forward layers" in untested
    )


def test_decided_findings_are_sentences(tmp_path):
    models = [Model(n_layers=n, n_heads=2, seed=seed, induction=0.3 * (n == 2)) for n in (1, 2) for seed in range(3)]
    text, _ = rendered(tmp_path, *models)
    findings = text.partition("**Findings**")[2].partition("<details>")[0]
    (line,) = [line for line in findings.splitlines() if line.startswith("- **holds**: attention that does induction")]
    assert re.search(r"Found: 0\.\d+ .*; must be \\> 0 \(\[Elhage et al\. 2021", line)


def test_a_study_that_learned_nothing_says_so_before_its_claims(tmp_path):
    models = [Model(n_heads=2, seed=seed, loss=6.25) for seed in range(3)]
    render_report(write_warehouse(tmp_path / "warehouse.duckdb", *models), "invented", tmp_path)
    claims = (tmp_path / "report.md").read_text().partition("**Findings**")[2].partition("## Models")[0]
    assert "> **These models learned too little to say what training does" in claims
    assert "**holds**" not in claims
    assert "undertrained: " in claims


def test_equal_warehouses_give_equal_bytes(warehouse, quick, tmp_path):
    folder, _ = quick
    heard: list[float] = []
    render_report(warehouse, "invented", tmp_path, heard.append, make_parts=run_side_by_side)
    assert len(heard) > 10
    assert heard == sorted(heard)
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in folder.iterdir()}
    for path in folder.rglob("*"):
        if path.is_file():
            assert (tmp_path / path.relative_to(folder)).read_bytes() == path.read_bytes()


def test_every_query_can_be_pasted_into_headstream_sql(warehouse):
    with open_results(warehouse, "invented") as results:
        for name, path in query_files().items():
            assert path.read_text().startswith("-- ")
            assert not set(results.sql(name)) & set('"$`!\\'), "a shell would read it inside double quotes"


def test_no_sql_is_in_the_page_and_all_of_it_beside(warehouse, quick):
    """Each linked file runs as it is and gives the rows that the report was made of; and there are no others."""
    folder, _ = quick
    text = (folder / "report.md").read_text()
    assert "```sql" not in text
    assert "SELECT" not in text
    linked = set(re.findall(r"\]\(queries/(\w+)\.sql\)", text))
    assert linked == {path.stem for path in folder.glob("queries/*")}
    pictures_and_tables = re.split(r"\n\n", text)
    for block, after in itertools.pairwise(pictures_and_tables):
        if block.startswith(("![", "| ")) and not block.startswith("| word"):
            assert "](queries/" in after, block
    with open_results(warehouse, "invented") as results:
        for name in linked:
            found = run_sql(warehouse, (folder / "queries" / f"{name}.sql").read_text())
            assert readable_rows(found.to_pylist()) == readable_rows(results.rows(name)), name


def readable_rows(rows: list[dict]) -> list[dict]:
    """Rows in the digits that are shown: sums of floats depend on their order."""
    return [{key: readable(value) for key, value in row.items()} for row in rows]


def test_a_damaged_warehouse_is_named_and_nothing_is_left_beside(warehouse, tmp_path):
    broken = tmp_path / "w.duckdb"
    broken.write_bytes(warehouse.read_bytes())
    with duckdb.connect(broken) as connection:
        connection.execute("DROP TABLE evaluations")
    folder = tmp_path / "report"
    folder.mkdir()
    with pytest.raises(WorkError, match=r"w\.duckdb must hold what .* got: .*evaluations.* `headstream index`"):
        render_report(broken, "invented", folder, make_parts=run_side_by_side)
    assert not [*folder.glob(".*")]


def test_a_part_whose_process_was_killed_is_worth_another_try(warehouse, tmp_path):
    def killed(parts, on_progress):
        raise ProcessDied(f"draw_figures: it was killed before it read {tmp_path}/.warehouse.duckdb.")

    with pytest.raises(ProcessDied, match=re.escape(f"before it read {warehouse}.")):
        render_report(warehouse, "invented", tmp_path, make_parts=killed)


def test_a_study_must_be_in_the_warehouse(warehouse, tmp_path):
    with pytest.raises(UserError, match=r"got 'quick'\. There are invented"):
        render_report(warehouse, "quick", tmp_path)


# Studies of all kinds


def test_a_study_without_heads(tmp_path):
    text, facts = rendered(tmp_path, ZERO)
    assert facts["answer"][0].startswith("No model has attention heads")
    assert "- No picture: no model has heads" in text.partition("What is not shown")[2]
    assert "no heads" in text
    assert "missing" not in text.split("## Provenance")[0]
    assert re.findall("(?m)^## (.*)$", text) == ["Models", "Learning", "Circuits", "Provenance", "Glossary"]
    assert re.findall("(?m)^#### .*|^### .*", text) == [
        "### In context", "### Phase changes", "### The direct path and bigrams", "### Identities"
    ]  # fmt: skip


def test_one_model_without_attention_on_a_passage(tmp_path):
    text, _ = rendered(tmp_path, Model(n_heads=2), without={"attention_samples"})
    assert "No picture: no head whose attention was kept has a role or another reason to be looked at." in text
    assert "figures/head_map_1.svg" in text


@pytest.mark.usefixtures("saved_figures")
def test_missing_metrics_are_missing_and_never_zero(tmp_path):
    without = {
        "heads.induction_random_period", "evaluations.validation_loss_nats", "evaluations.repeat_gain_nats",
        "training", "position_losses", "models.seconds",
    }  # fmt: skip
    text, facts = rendered(tmp_path, Model(n_heads=2), without=without)
    assert "its score is missing" in facts["answer"][0]
    assert "come again) is missing" in facts["answer"][0]
    assert "Validation loss, nats per token: missing." in facts["answer"]
    assert "| 2L2H | 1 | 0 | missing | missing | missing | missing |" in text
    assert "0.000" not in text.split("## Learning")[0]
    for absent in ("validation losses", "repeat_gain is", "losses by position"):
        assert f"No picture: {absent}" in text


def test_nothing_but_names_and_failures(tmp_path):
    text, facts = rendered(tmp_path, Model(failure="loss diverged at step 220"))
    assert facts["answer"] == [
        "n_layers=2 n_heads=4 seed=0 failed: loss diverged at step 220.",
        "No model is there to be measured, so there is nothing to say yet.",
    ]
    assert "loss diverged at step 220" in text


def test_failures_stand_beside_the_models(tmp_path):
    failed = Model(n_layers=3, failure="training: loss diverged.\nLower `learning_rate` | <b>now</b>")
    text, facts = rendered(tmp_path, ZERO, failed)
    assert facts["answer"][0] == (
        "1 of 2 models failed, the first, n_layers=3 n_heads=4 seed=0, since training: loss diverged. Lower"
        " `learning_rate` | <b>now</b>."
    )
    assert len(facts["answer"]) <= MAX_LINES
    assert r"training: loss diverged. Lower \`learning_rate\` \| &lt;b>now&lt;/b> |" in text


def test_seeds_have_spreads(tmp_path):
    models = [Model(seed=seed, induction=0.25 + 0.05 * seed, repeat_gain=1 + seed, loss=2.3) for seed in range(3)]
    with open_results(write_measurements(tmp_path / "w.duckdb", *models), "invented") as results:
        answer, shown = answer_lines(results), table_with_spreads(results.rows("groups"))
    # sd 1, n = 3: 4.3027 / sqrt(3) = 2.48
    assert answer[0] == (
        "2L4H has an induction head in 3 of 3 seeds: induction_random_period of the best head is 0.30 (0.25 to 0.35) "
        "(in seed 1, it is L1H3; 0.05 before training); repeat_gain (by how much loss falls where random tokens come "
        "again) is 2.00 ± 2.48 nats."
    )
    assert "| 2L4H | 3 | 1 | 2.300 | 2.00\u00a0±\u00a02.48 | 0.300\u00a0(0.250\u00a0to\u00a00.350) | 3 of 3 |" in shown


@pytest.mark.usefixtures("figures_as_they_fall")
def test_hostile_text_stays_text(tmp_path):
    model = Model(
        n_heads=2, passage=("<|bos|>", "$x$", "<b>", "`", "\x00\x1b", "|", "$x$", "<b>"), cell=f"optimizer={HOSTILE}"
    )
    failed = Model(seed=1, cell=f"optimizer={HOSTILE}2", failure=HOSTILE)
    text, _ = rendered(tmp_path, model, failed, question=HOSTILE)
    outside_code = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert "<script>" not in outside_code
    assert "$x$" not in outside_code
    assert "\x07" not in text
    assert text.count("\n# ") == 0
    svg = (tmp_path / "report" / "figures" / "attention_induction.svg").read_text()
    assert "&lt;b&gt;" in svg
    assert ">$x$<" in svg
    assert "\\x00\\x1b" in svg


@pytest.mark.usefixtures("figures_as_they_fall")
def test_a_large_grid_shows_its_best(tmp_path):
    models = [
        Model(n_layers=n, n_heads=heads, cell=f"d_model={width}", induction=0.01 * heads * n)
        for n in (1, 2)
        for heads in (1, 2, 11)
        for width in (32, 64, 128)
    ]
    text, _ = rendered(tmp_path, *models)
    assert "And 6 more: [SQL](queries/groups.sql)" in text
    assert "15 more kinds of model are not shown" in text
    assert sorted(path.stem for path in tmp_path.glob("report/figures/head_map_*")) == [
        f"head_map_{i}" for i in range(1, 4)
    ]
    assert sum(path.stat().st_size for path in tmp_path.glob("report/figures/*")) < 1_500_000


# The answer


def test_numbers_of_the_answer_are_those_of_the_warehouse(warehouse, quick):
    _, facts = quick
    induction, formed, others, pruned, circuit = facts["answer"]
    with duckdb.connect(warehouse, read_only=True) as connection:

        def ask(query: str) -> tuple:
            return connection.execute(query).fetchone()

        head, score = ask(
            "SELECT label, induction_random_period FROM head_summary WHERE role = 'induction' AND name = '2L4H'"
        )
        gain, loss = ask("SELECT repeat_gain_nats, validation_loss_nats FROM model_summary WHERE name = '2L4H'")
        start_tokens, end_tokens, share = ask(
            "SELECT window_start_tokens, window_end_tokens, in_context_learning_share FROM phase_changes "
            "WHERE name = '2L4H' AND score = 'prefix_matching' AND kind = 'abrupt'"
        )
        control = ask("SELECT best_induction_random_period FROM model_summary WHERE name = '1L4H'")[0]
        writer, previous, without, intact = ask(
            "SELECT writer, writer_attention[1], prefix_matching_without, prefix_matching FROM induction_circuits "
            "WHERE name = '2L4H'"
        )
    start = f"2L4H, of one seed, has an induction head, {head}: on repeated random tokens, {score:.2f} of"
    assert induction.startswith(start)
    assert f"repeat_gain (by how much loss falls where random tokens come again) is {gain:.2f} nats" in induction
    window = f"between the checkpoints at {short_count(start_tokens)} and {short_count(end_tokens)} tokens"
    assert formed.startswith(f"It formed abruptly, {window}: ")
    assert f"{100 * share:.0f}\u00a0% of what training gains in context falls into that window" in formed
    assert f"1L4H has no induction head (best head {control:.2f}, repeat_gain 0.21 nats); 0L has no heads" in others
    assert others.endswith(f"Validation loss, nats per token: 4.02 (0L); 2.78 (1L4H); {loss:.2f} (2L4H).")
    assert pruned.startswith("Of 8 heads of 2L4H, 3 can be removed at under 1\u00a0% more loss and 4 at under 5\u00a0%")
    assert circuit.startswith(f"Keys of {head} read {writer} (previous_token {previous:.2f}, z = ")
    assert circuit.endswith(f"prefix_matching is {without:.2f} instead of {intact:.2f}.")


def test_no_induction_head_is_said_to_be_none(tmp_path):
    weak = [Model(n_layers=1, n_heads=n, induction=0.01 * n) for n in (5, 6)]
    with open_results(write_measurements(tmp_path / "w.duckdb", *weak), "invented") as results:
        lines = answer_lines(results)[2:]  # the first are about the number of heads
    assert lines[0].startswith(
        "No model has an induction head. The nearest to one is in 1L6H, trained on 5.0 M tokens: "
        "induction_random_period of its best head is 0.06 (L0H5; "
    )
    assert not any("phase change" in line for line in lines), "a phase change of what isn't there"
    assert lines[1].startswith(
        "The lowest induction score, which other seeds may change (an interval needs three): 1L5H has no induction head"
    )


def test_the_highest_of_many_that_are_alike_is_not_called_so(tmp_path):
    models = [
        Model(seed=seed, cell=f"d_model={width}", induction=0.3 + 0.01 * ((seed + width) % 3))
        for seed in range(3)
        for width in range(4)
    ]
    with open_results(write_measurements(tmp_path / "w.duckdb", *models), "invented") as results:
        answer = answer_lines(results)
    assert "has an induction head in 3 of 3 seeds" in answer[0]
    assert not any("highest of" in line or "lowest induction score" in line for line in answer)


def test_too_few_checkpoints_leave_open_how_heads_formed(tmp_path):
    path = write_measurements(tmp_path / "w.duckdb", Model())
    with duckdb.connect(path) as connection:  # those that are left are a factor of 2 or more apart
        connection.execute("DELETE FROM evaluations WHERE step NOT IN (0, 16, 64, 150, 420, 1220)")
    with open_results(path, "invented") as results:
        (line,) = [line for line in answer_lines(results) if "abruptly" in line]
        (group,) = results.rows("groups")
        (change, *_) = [row for row in results.rows("phase_changes") if row["score"] == "prefix_matching"]
    assert line.startswith("Whether prefix_matching of the best head of 2L4H rose abruptly or steadily can't be told: ")
    assert group["formed_by_tokens_note"] == "can't be told"
    assert (change["rise"], change["window_end_tokens"]) == ("unresolved", None)


def test_no_induction_head_in_models_that_learned_nothing_says_so(tmp_path):
    """Not even bigrams: that there is no induction head says nothing of the architecture."""
    with open_results(
        write_measurements(tmp_path / "w.duckdb", Model(n_layers=1, induction=0.01, loss=3.5)), "invented"
    ) as r:
        (line,) = [line for line in answer_lines(r) if line.startswith("No model has an induction head.")]
    assert "trained on 5.0 M tokens, too few to predict better than bigrams do: induction_random_period" in line


def test_models_that_differ_only_in_their_seed_share_a_label(tmp_path):
    models = [Model(seed=seed, cell=f"d_model={width}") for seed in (0, 1) for width in (32, 64)]
    models += [Model(n_layers=0, n_heads=4), Model(n_layers=0, n_heads=8, cell="d_model=32")]
    path = write_measurements(tmp_path / "w.duckdb", *models)
    query = "SELECT label, count(*) AS n, count(*) FILTER (stands_for_label) AS s FROM labelled_models GROUP BY label"
    found = {row["label"]: (row["n"], row["s"]) for row in run_sql(path, query).to_pylist()}
    assert found == {
        "2L4H d_model=32": (2, 1),
        "2L4H d_model=64": (2, 1),
        "0L n_heads=4": (1, 1),
        "0L d_model=32 n_heads=8": (1, 1),
    }


def test_a_variant_is_known_by_its_name(tmp_path):
    cells = ["variant=plain", "variant=gelu feed_forward=gelu d_mlp=64", "variant=wide d_model=64"]
    models = [Model(seed=seed, cell=cell) for seed in (0, 1) for cell in cells]
    path = write_measurements(tmp_path / "w.duckdb", *models)
    query = "SELECT label, count(*) AS n FROM labelled_models GROUP BY label"
    found = {row["label"]: row["n"] for row in run_sql(path, query).to_pylist()}
    assert found == {"2L4H plain": 2, "2L4H gelu": 2, "2L4H wide": 2}


# Markdown


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=60))
@example(HOSTILE)
@example("1. a")
@example("1.5 a")
@example("-1")
@example("12) a")
@example("- a")
@example("=")
@example("___")
@example("a_b_ _c_")
@example("&#42;")
@example("\\| \\\\| \\*")
@example("# a ## #")
@example("~~~ +")
@example("[a]: b")
@example("== =")
def test_escaped_text_reads_as_it_was(text):
    expected = terminal_safe(" ".join(text.split()))
    for page in ("a\n\n{}", "| a |\n|---|\n| {} |", "a\n- {}", "> a\n\n> {}"):
        shown = html.unescape(re.sub(r"<[^>]*>", "", to_html(page.format(escaped(text)))))
        assert " ".join(shown.split()) == " ".join(["a", *expected.split()])


def test_only_what_would_be_syntax_is_escaped():
    plain = ["-1.5", "2.71", "+3 %", "a_b", r"\n····", "a & b", "=x", "C#", "->", "1.a", "(5)"]
    assert [escaped(text) for text in plain] == plain
    escapes = {
        "12)": r"12\)",
        "1. a": r"1\. a",
        "- a": r"\- a",
        "_": r"\_",
        "|": r"\|",
        "&lt;": "&amp;lt;",
        "\\": r"\\",
    }
    assert {text: escaped(text) for text in escapes} == escapes


def test_code_blocks_hold_any_fence():
    text = "a\n````\n</details>\n```"
    assert to_html(code_block(text, "sql")) == f'<pre><code class="language-sql">{html.escape(text)}\n</code></pre>\n'


def test_numbers_are_readable():
    values = [(None, "x"), (float("nan"), "x"), (0.0, "x"), (12.345, "seconds"), (98765.4, "x"), (5_000_000, "tokens")]
    assert [readable(*value) for value in values] == ["missing", "missing", "0.000", "12.3", "98,765", "5.0 M"]
    assert [readable(1234, name) for name in ("seed", "parameters", "window_tokens")] == ["1234", "1,234", "1.2 k"]
    counts = {0: "0", 999: "999", 999.6: "1.0 k", 99_940: "99.9 k", 99_960: "100 k", 2e9: "2.0 G"}
    assert {count: short_count(count) for count in counts} == counts
    assert as_markdown(True) == "yes"
    assert as_markdown(Markdown("*a*")) == "*a*"


def test_tables_have_notes_and_spreads():
    rows = [
        {"name": "a_b", "loss_nats": 2.5, "loss_nats_ci95": 0.25, "loss_nats_note": None},
        {"name": "few", "loss_nats": 2.5, "loss_nats_ci95": None, "loss_nats_values": [2.6, None, 2.4]},
        {"name": "wide", "loss_nats": 0.5, "loss_nats_values": [0.9, 0.1, 0.5]},
        {"name": "same", "loss_nats": 0.5, "loss_nats_ci95": 0.0, "loss_nats_values": [0.5, 0.5, 0.5]},
        {"name": "|", "loss_nats": None, "loss_nats_ci95": None, "loss_nats_note": "no heads"},
        {"name": None, "loss_nats": None, "loss_nats_ci95": None, "loss_nats_note": None},
    ]
    rows[0]["loss_nats_values"] = [2.4, 2.5, 2.6]
    assert table_with_spreads(rows).replace("\u00a0", " ").splitlines()[2:] == [
        "| a_b | 2.50 ± 0.25 |",
        "| few | 2.600, 2.400 |",
        "| wide | 0.500 (0.100 to 0.900) |",
        "| same | 0.500 |",
        "| \\| | no heads |",
        "| missing | missing |",
    ]


# Requests and publishing


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda path: None)
    return Store(tmp_path / "store")


def make(store: Store, stage: str, **files: str) -> Artifact:
    def write(folder: Path) -> None:
        for name, content in files.items():
            path = folder / name.replace("__", "/").replace("_svg", ".svg").replace("_md", ".md").replace(
                "_sql", ".sql"
            )
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)

    return store.build(Spec(stage, "v", files, {}, {}), write)


def test_a_reports_key_changes_with_the_record_and_the_templates(store, tmp_path, monkeypatch):
    first, second = make(store, "study", a="1"), make(store, "study", a="2")
    spec = report_spec(first)
    assert spec.key == report_spec(first).key != report_spec(second).key
    monkeypatch.setattr(artifact_specs, "ROOT", tmp_path)
    (tmp_path / "tasks" / "report" / "sections").mkdir(parents=True)
    for content in ("x", "y"):
        (tmp_path / "tasks" / "report" / "sections" / "report.md.jinja").write_text(content)
        changed = report_spec(first)
        assert changed.key != spec.key
        spec = changed


def test_zero_has_no_sign(tmp_path):
    seeds = [Model(seed=seed, n_layers=1, n_heads=2, repeat_gain=gain) for seed, gain in enumerate((-0.02, 0.0, 0.013))]
    text, _ = rendered(tmp_path, *seeds, ZERO)
    assert "0.00 ± 0.04" in text
    assert not re.search(r"(?<![\w.])-0\.0+(?!\d)", text)


def test_publishing_replaces_what_was_there(store, tmp_path):
    older = make(store, "report", report_md="old", figures__a_svg="a", figures__b_svg="b")
    newer = make(store, "report", report_md="new", figures__b_svg="c", queries__x_sql="SELECT 1")
    folder = tmp_path / "generated" / "quick"
    assert publish_report(older, folder) == folder / "report.md"
    (folder / "notes.txt").write_text("mine")
    (folder / "queries").mkdir()
    (folder / "queries" / "old.sql").write_text("SELECT 0")
    publish_report(newer, folder)
    files = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert files == {"report.md": "new", "figures/b.svg": "c", "queries/x.sql": "SELECT 1", "notes.txt": "mine"}


def test_publishing_needs_a_folder(store, tmp_path):
    (tmp_path / "generated").write_text("")
    with pytest.raises(WorkError, match="must be a folder that can be written"):
        publish_report(make(store, "report", report_md="x"), tmp_path / "generated" / "quick")


def test_gates_are_reported_by_kind_of_token(tmp_path):
    model = Model(n_layers=1, n_heads=2)
    path = write_measurements(tmp_path / "w.duckdb", model)
    with duckdb.connect(str(path)) as connection:
        for head, word, space in ((0, 0.25, 0.5), (1, 0.75, 0.0)):
            connection.execute("INSERT INTO gate_activity VALUES (?, 0, ?, 'word', ?)", [model.model_id, head, word])
            connection.execute("INSERT INTO gate_activity VALUES (?, 0, ?, 'space', ?)", [model.model_id, head, space])
    with open_results(path, "invented") as results:
        (row,) = results.rows("gate_activity")
    assert (row["word"], row["space"], row["number"]) == (0.5, 0.25, None)
    assert (row["head_that_follows_tokens_most"], row["its_range"]) == ("L0H1", 0.75)


def test_how_many_rises_had_not_ended_is_told_of_all_seeds(tmp_path):
    path = write_measurements(tmp_path / "w.duckdb", *(Model(seed=seed) for seed in range(3)))

    def formation():
        with open_results(path, "invented") as results:
            return next(line for line in answer_lines(results) if line.startswith("It formed abruptly"))

    assert "had not ended" not in formation()
    for seeds, told in (("(1)", "in 1 of these seeds"), ("(1, 2)", "in 2 of these"), ("(0, 1, 2)", "in all of these")):
        with duckdb.connect(path) as connection:
            of_seeds = f"(SELECT model_id FROM models WHERE seed IN {seeds})"
            connection.execute(f"DELETE FROM evaluations WHERE step > 600 AND model_id IN {of_seeds}")
        assert f"; {told}" in formation()
