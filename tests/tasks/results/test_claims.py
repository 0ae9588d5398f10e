import re
from math import inf

import duckdb
import pytest
from claimed_studies import CASES, Tables, around, heads_cost_constant, qk_change_patterns, sparse_is_linear
from scipy.stats import binomtest, t

from tasks import places
from tasks.errors import UserError
from tasks.results import claim_files
from tasks.results.claim_files import Claim, _parse_rule, read_claims
from tasks.results.claims import decide, insert_claims, lacking_for_claims
from tasks.results.tables import write_table
from tasks.results.views import create_tables_and_views

SHARES_OF_MODELS = {"heads-redundant", "induction-by-k-composition"}
CLAIMS = {claim.claim_id: claim for claim in read_claims()}
MEANS = [claim_id for claim_id, claim in CLAIMS.items() if not claim.rule.every]


def fill(connection, folder, *studies: Tables) -> None:
    """Inserts the studies' rows, those of a table together."""
    for name in dict.fromkeys(name for study in studies for name in study):
        rows = [row for study in studies for row in study[name]]
        path = write_table(folder, name, rows)
        connection.execute(f"INSERT INTO {name} BY NAME FROM read_parquet(?)", [str(path)])


@pytest.fixture(scope="module")
def empty():
    with duckdb.connect() as connection:
        create_tables_and_views(connection)
        connection.execute("SET threads = 1")
        yield connection


@pytest.fixture
def database(empty, tmp_path):
    """An empty warehouse in memory, and a function that fills it with studies until the test ends."""
    empty.begin()
    yield empty, lambda *studies: fill(empty, tmp_path, *studies)
    empty.rollback()


def invented() -> tuple[dict[str, Tables], dict[str, list[float]]]:
    """For each claim the studies `<claim>/holds`, `/fails`, `/undecided`, `/alone`, `/unmeasured`, and their values."""
    studies, values = {}, {}
    for claim_id, case in CASES.items():
        wished = {"holds": case.holds, "fails": case.fails, "undecided": case.undecided, "alone": case.holds[:1]}
        for kind, wish in wished.items():
            name = f"{claim_id}/{kind}"
            studies[name], values[name] = case.tables(name, wish)
        measured, _ = case.tables(f"{claim_id}/unmeasured", case.holds)
        bare = {name: rows for name, rows in measured.items() if name in ("studies", "study_models", "models")}
        studies[measured.study] = Tables(measured.study)
        studies[measured.study] |= bare
    other = Tables("no-heads")
    other.model(n_layers=0)
    one_layer = Tables("one-layer")
    one_layer.model(n_layers=1, feed_forward="gelu", d_mlp=64, normalization="layernorm")
    sharing = Tables("sharing")  # everybody's models, elsewhere in its grid
    for model in [row["model_id"] for study in studies.values() for row in study["models"]]:
        sharing["study_models"].append({"study": "sharing", "model_id": model, "cell": "seed=0"})
    return studies | {"no-heads": other, "one-layer": one_layer, "sharing": sharing}, values


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """One warehouse with every invented study, a function that decides, and the studies' values."""
    studies, values = invented()
    with duckdb.connect() as connection:
        create_tables_and_views(connection)
        connection.execute("SET threads = 1")
        fill(connection, tmp_path_factory.mktemp("world"), *studies.values())

        def decided(claim_id: str, study: str) -> dict:
            return decide(connection, [CLAIMS[claim_id]], study)[0]

        yield connection, decided, values


# Every claim, with values that decide it


def test_every_claim_has_a_case():
    assert list(CLAIMS) == sorted(CASES)


@pytest.mark.parametrize("kind", ["holds", "fails"])
@pytest.mark.parametrize("claim_id", CLAIMS)
def test_the_worst_value_or_the_interval_of_the_mean_decides(world, claim_id, kind):
    _, decided, values = world
    found, values = decided(claim_id, f"{claim_id}/{kind}"), values[f"{claim_id}/{kind}"]
    assert (found["verdict"], found["reason"], found["n"]) == (kind, None, len(values))
    if CLAIMS[claim_id].rule.every:
        worst = max(map(abs, values)) if claim_id == "cost-exponents" else max(values)
        assert found["estimate"] == pytest.approx(worst, rel=1e-6)
        assert found["ci_low"] is found["ci_high"] is None
    else:
        mean = sum(values) / len(values)
        assert [found[name] for name in ("estimate", "ci_low", "ci_high")] == pytest.approx(
            [mean, *interval(claim_id, values)], abs=1e-4
        )


def interval(claim_id: str, values: list[float]) -> tuple[float, float]:
    n, mean = len(values), sum(values) / len(values)
    if claim_id in SHARES_OF_MODELS:
        wilson = binomtest(round(sum(values)), n).proportion_ci(method="wilson")
        return wilson.low, wilson.high
    sem = (sum((value - mean) ** 2 for value in values) / (n - 1) / n) ** 0.5
    return mean - t.ppf(0.975, n - 1) * sem, mean + t.ppf(0.975, n - 1) * sem


@pytest.mark.parametrize("claim_id", MEANS)
def test_a_bar_within_the_interval_or_a_single_value_leaves_it_undecided(world, claim_id):
    _, decided, values = world
    found = decided(claim_id, f"{claim_id}/undecided")
    assert (found["verdict"], found["reason"]) == ("undecided", "the interval holds the bar")
    low, high = interval(claim_id, values[f"{claim_id}/undecided"])
    assert [found["ci_low"], found["ci_high"]] == pytest.approx([low, high], abs=1e-4)
    alone = decided(claim_id, f"{claim_id}/alone")
    assert (alone["verdict"], alone["n"]) == ("undecided", 1)
    assert alone["reason"] == f"an interval needs 2 {CLAIMS[claim_id].over}"


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_without_its_models_or_measurements_it_is_not_tested(world, claim_id):
    _, decided, _ = world
    claim = CLAIMS[claim_id]
    unmeasured = decided(claim_id, f"{claim_id}/unmeasured")
    assert (unmeasured["verdict"], unmeasured["estimate"], unmeasured["n"]) == ("not tested", None, 0)
    assert unmeasured["reason"] == claim.empty or unmeasured["reason"].startswith("no values in ")
    for study in ("nowhere", "one-layer" if "n_layers = 0" in claim.needs else "no-heads"):
        lacking = decided(claim_id, study)
        assert (lacking["verdict"], lacking["reason"]) == ("not tested", f"lacks {claim.lacks}")
        assert "n" not in lacking


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_a_verdict_does_not_change_with_other_studies(world, database, claim_id):
    connection, fill_in = database
    study = f"{claim_id}/holds"
    fill_in(invented_alone(study))
    assert decide(connection, [CLAIMS[claim_id]], study) == [world[1](claim_id, study)]


def invented_alone(study: str) -> Tables:
    claim_id, kind = study.split("/")
    return CASES[claim_id].tables(study, getattr(CASES[claim_id], kind))[0]


@pytest.mark.parametrize("claim_id", CLAIMS)
def test_what_a_study_could_decide_is_known_before_it_runs(world, claim_id):
    connection, _, _ = world
    claim = CLAIMS[claim_id]
    lacks = {
        kind: lacking_for_claims(connection, [claim], f"{claim_id}/{kind}")[claim_id]
        for kind in ("unmeasured", "alone", "nowhere")
    }
    assert (lacks["unmeasured"], lacks["nowhere"]) == (None, claim.lacks)
    if not claim.rule.every and claim_id != "induction-by-k-composition":  # its models are known once they are trained
        assert lacks["alone"] == (f"2 or more {claim.lacks}" if claim.over == "models" else "2 or more seeds")


# What a margin of two bars is made of


def test_values_that_change_patterns_refute_composition(database):
    connection, fill_in = database
    study = Tables("s")
    for i, share in enumerate((5.0, 4.0, 6.0)):
        qk_change_patterns(study, i, share, change=0.01)
    fill_in(study)
    (found,) = decide(connection, [CLAIMS["qk-change-patterns"]], "s")
    assert (found["verdict"], found["estimate"]) == ("fails", pytest.approx(-0.01))


def test_more_heads_must_help(database):
    connection, fill_in = database
    study = Tables("s")
    for seed in range(3):
        for n_heads, loss in ((1, 2.0), (2, 2.1), (4, 2.3), (8, 2.6)):  # gains shrink, below 0
            study.model(seed=seed, loss=loss, n_heads=n_heads)
    fill_in(study)
    (found,) = decide(connection, [CLAIMS["more-heads-diminish"]], "s")
    assert (found["verdict"], found["estimate"]) == ("fails", pytest.approx(-0.6))


def test_flops_that_differ_count_as_too_slow(database):
    connection, fill_in = database
    study = Tables("s")
    heads_cost_constant(study, 0, 1.0)
    study["costs"][-1]["flops_counted"] *= 2
    fill_in(study)
    (found,) = decide(connection, [CLAIMS["heads-cost-constant"]], "s")
    assert (found["verdict"], found["estimate"]) == ("fails", 3.0)


def test_sparse_attention_must_be_fast_too(database):
    connection, fill_in = database
    study = Tables("s")
    for i, margin in enumerate(around(0, 0.1)[0]):
        sparse_is_linear(study, i, margin, exponent=1.5)
    fill_in(study)
    (found,) = decide(connection, [CLAIMS["sparse-is-linear"]], "s")
    assert (found["verdict"], found["estimate"]) == ("fails", pytest.approx(1 - 1.5 / 1.2))


def test_costs_must_be_measured_far_enough(database):
    connection, fill_in = database
    study = CASES["cost-exponents"].tables("s", [0.0])[0]  # no d_model
    fill_in(study)
    (found,) = decide(connection, [CLAIMS["cost-exponents"]], "s")
    assert (found["verdict"], found["reason"]) == ("not tested", CLAIMS["cost-exponents"].empty)


def test_heads_that_never_close_at_little_loss_are_all_active(database):
    connection, fill_in = database
    study = Tables("s")
    for seed in range(3):
        study.model(seed=seed, loss=3.0, gates="none")
        study.head(study.model(seed=seed, loss=3.1, gates="dynamic"), 0, 0, active_fraction=0.2)
    fill_in(study)
    (found,) = decide(connection, [CLAIMS["dynamic-heads"]], "s")
    assert (found["verdict"], found["estimate"]) == ("fails", 1.0)


def test_an_induction_head_without_an_earlier_layer_composes_with_nothing(database):
    connection, fill_in = database
    study = Tables("s")
    for seed in range(5):
        raises = {"induction_copying_logit": 1.0, "induction_copying_logit_sem": 0.1}
        study.head(study.model(seed=seed), 0, 0, induction_random_period=0.5, **raises)
    fill_in(study)
    (found,) = decide(connection, [CLAIMS["induction-by-k-composition"]], "s")
    assert (found["verdict"], found["n"]) == ("fails", 5)


# Macros


@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (0, 7), (3, 7), (7, 7), (90, 100)])
def test_shares_have_wilson_intervals(database, k, n):
    found = database[0].execute("SELECT share_low(?, ?), share_high(?, ?)", [k / n, n] * 2).fetchone()
    wilson = binomtest(k, n).proportion_ci(method="wilson")
    assert found == pytest.approx((wilson.low, wilson.high), abs=1e-6)


def test_places_without_some_axes(database):
    places_ = ["n_layers=2 n_heads=[4, 2] d_head=8 seed=0", "seed=1 n_layers=2", "model", None]
    found = [database[0].execute("SELECT without_axes(?, 'seed|n_heads')", [place]).fetchone()[0] for place in places_]
    assert found == ["n_layers=2 d_head=8", "n_layers=2", "model", None]


# Rules


@pytest.mark.parametrize(
    ("rule", "interval", "verdict"),
    [
        ("estimate > 0.2", (0.21, 0.4), "holds"),
        ("estimate > 0.2", (0.2, 0.4), "undecided"),
        ("estimate > 0.2", (0.1, 0.2), "fails"),
        ("estimate >= 0.2", (0.2, 0.4), "holds"),
        ("estimate >= -2e-1", (-0.2, inf), "holds"),
        ("estimate < 0", (-0.4, -0.1), "holds"),
        ("estimate < 0", (-0.4, 0), "undecided"),
        ("estimate < 0", (0, 0.1), "fails"),
        ("estimate <= 0", (-0.4, 0), "holds"),
        ("estimate = 0", (0, 0), "holds"),
        ("estimate = 0", (-1, 1), "undecided"),
        ("estimate between 0.5 and 2", (0.5, 2), "holds"),
        ("estimate between 0.5 and 2", (0.4, 1), "undecided"),
        ("estimate between 0.5 and 2", (0.4, 3), "undecided"),
        ("estimate between 0.5 and 2", (0.1, 0.4), "fails"),
        ("estimate between 0.5 and 2", (2.1, 3), "fails"),
        ("every model < 1e-4", (1e-5, 1e-5), "holds"),
        ("every model = 0", (1, 1), "fails"),
    ],
)
def test_rules(rule, interval, verdict):
    parsed = _parse_rule("x.sql", f"holds if {rule}")
    assert parsed.verdict(*interval) == verdict
    assert parsed.every == rule.startswith("every")


# Files


GOOD = """-- statement: heads are
--   many
-- source: 000, 003
-- over: models
-- needs: total_heads > 0
-- lacks: models with heads
-- rule: holds if estimate > 0.5
SELECT unnest([0.9, 1.0, 1.1]) AS value
"""


def read(tmp_path, monkeypatch, text: str) -> Claim:
    (tmp_path / "many-heads.sql").write_text(text)
    monkeypatch.setattr(claim_files, "CLAIMS", tmp_path)
    (claim,) = read_claims()
    return claim


def test_a_header_may_have_long_lines(tmp_path, monkeypatch):
    claim = read(tmp_path, monkeypatch, GOOD)
    assert (claim.claim_id, claim.statement, claim.source) == ("many-heads", "heads are many", "000, 003")
    assert (claim.unit, claim.evidence, claim.empty) == (None, None, None)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("-- source: 000, 003\n", "", "the header must have statement, .*, got: no source. Add it."),
        ("-- source", "-- sorce", "a header may have statement, .*, got: sorce. Remove or rename it."),
        (
            "-- source: ",
            "--source ",
            "a header line must be `-- name: text`, or .*, got: --source 000, 003. Rewrite it.",
        ),
        ("over: models", "over: heads", "over must be one of seeds, models, configurations, got: heads."),
        ("if estimate > 0.5", "if every model > 0.5", "rule must be `holds if estimate > 0.2` .*, got: holds if every"),
        ("> 0.5", "> half", "rule must be `holds if estimate > 0.2` .*, got: holds if estimate > half."),
        ("SELECT unnest", "SELEC unnest", "below its header must be one SELECT, got: Parser Error: syntax error .*"),
        ("SELECT unnest", "SELECT 1; SELECT unnest", "below its header must be one SELECT, got: SELECT, SELECT."),
        (GOOD[GOOD.index("SELECT") :], "", "below its header must be one SELECT, got: nothing."),
        ("SELECT unnest", "DROP TABLE heads; SELECT unnest", "below its header must be one SELECT, got: DROP, SELECT."),
    ],
)
def test_a_file_that_is_no_claim_is_refused_in_one_line(tmp_path, monkeypatch, old, new, message):
    assert GOOD.count(old) == 1
    with pytest.raises(UserError, match=f"^reports/claims/many-heads.sql: {message}") as refusal:
        read(tmp_path, monkeypatch, GOOD.replace(old, new))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("total_heads > 0", "n_haeds > 0", "needs must be a condition on cells, got: Binder Error: .*n_haeds"),
        ("1.0, ", "x, ", "its SELECT must run and give numbers or booleans, got: Binder Error"),
        (
            "[0.9, 1.0, 1.1]",
            "['much']",
            "its SELECT must run and give numbers or booleans, got: Conversion Error: .*much",
        ),
        ("AS value", "AS number", "its SELECT must give the column value, got: number. Name it so."),
        ("over: models", "over: seeds", "its SELECT must give the column seed, got: value. Name it so."),
        ("1.0, ", "'nan'::DOUBLE, ", "values must be numbers, got: NaN for s. Give NULL where there is no value."),
    ],
)
def test_a_claim_that_cannot_be_asked_is_refused_in_one_line(tmp_path, monkeypatch, database, old, new, message):
    connection, fill_in = database
    study = Tables("s")
    for seed in range(3):
        study.model(seed=seed)
    fill_in(study)
    assert decide(connection, [read(tmp_path, monkeypatch, GOOD)], "s")[0]["verdict"] == "holds"
    wrong = read(tmp_path, monkeypatch, GOOD.replace(old, new))
    with pytest.raises(UserError, match=f"^reports/claims/many-heads.sql: {message}") as refusal:
        decide(connection, [wrong], "s")
    assert "\n" not in str(refusal.value)


def test_every_evidence_is_a_heading_of_the_report():
    templates = (places.ROOT / "reports" / "templates").glob("*.jinja")
    headings = {h for path in templates for h in re.findall(r"^#+ (.+)$", path.read_text(), flags=re.MULTILINE)}
    assert {claim.evidence for claim in CLAIMS.values() if claim.evidence} <= headings


def test_every_select_can_be_pasted_into_headstream_sql():
    for claim in CLAIMS.values():
        assert not set(claim.select.replace("$study", "")) & set('"$`!\\'), claim.claim_id


# The table and its views


def test_every_study_and_claim_has_a_row_and_a_finding(database):
    connection, fill_in = database
    fill_in(invented_alone("paths-sum/holds"), invented_alone("heads-redundant/undecided"))
    insert_claims(connection)
    assert connection.execute("SELECT count(*) FROM claims").fetchone() == (2 * len(CLAIMS),)
    findings = "SELECT verdict, finding FROM claim_findings WHERE study = ? AND claim_id = ?"

    def finding(study: str, claim_id: str) -> tuple:
        return connection.execute(findings, [study, claim_id]).fetchone()

    assert finding("paths-sum/holds", "paths-sum") == ("holds", "9e-5 standard deviations, 2 models")
    assert finding("heads-redundant/undecided", "heads-redundant") == (
        "undecided",
        "1 (0.439 to 1) share of models, 3 models; the interval holds the bar",
    )
    assert finding("paths-sum/holds", "direct-is-bigram") == ("not tested", "lacks models of zero layers")
    assert finding("paths-sum/holds", "terms-add")[1] == f"lacks {CLAIMS['terms-add'].lacks}"
    assert finding("heads-redundant/undecided", "paths-sum")[1] == "no values in identities"


def test_the_latest_decisive_verdict_counts(database):
    connection, _ = database
    days = {"old": 1, "older": 0, "new": 2, "newest": 3}
    verdicts = {
        "a": {"old": "holds", "older": "fails", "new": "undecided", "newest": "not tested"},
        "b": {"old": "undecided", "new": "not tested"},
        "c": {"old": "holds", "new": "fails", "older": "holds"},
    }
    for study, day in days.items():
        row = "INSERT INTO studies BY NAME SELECT ? AS study, to_timestamp(? * 86400) AS finished_at"
        connection.execute(row, [study, day])
    for claim_id, by_study in verdicts.items():
        for study, verdict in by_study.items():
            row = "INSERT INTO claims BY NAME SELECT ? AS study, ? AS claim_id, ? AS verdict"
            connection.execute(row, [study, claim_id, verdict])
    latest = "SELECT claim_id, study, verdict, n_holds, n_fails FROM claims_latest"
    assert connection.execute(latest).fetchall() == [
        ("a", "old", "holds", 1, 1),
        ("b", "old", "undecided", 0, 0),
        ("c", "new", "fails", 2, 1),
    ]
