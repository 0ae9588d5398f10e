import re
from math import inf

import pytest
from claimed_studies import Tables
from decided_claims import CLAIMS, row_of

from headstream.tasks import places
from headstream.tasks.errors import UserError
from headstream.tasks.results.claim_files import Claim, _parse_rule, read_claims
from headstream.tasks.results.claims import decide


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
    assert parsed.every == ("model" if rule.startswith("every") else None)


GOOD = """-- statement: heads are
--   many
-- source: elhage-2021, Two-Layer Attention-Only Transformers
-- texts: composition, one-layer
-- needs: total_heads > 0
-- lacks: models with heads
-- rule: holds if estimate > 0.5
SELECT model_id, seed / 10 + 0.9 AS value FROM cells
"""


def read(tmp_path, monkeypatch, text: str) -> Claim:
    (tmp_path / "many-heads.sql").write_text(text)
    monkeypatch.setattr(places, "CLAIMS", tmp_path)
    (claim,) = read_claims()
    return claim


def test_a_header_may_have_long_lines(tmp_path, monkeypatch):
    claim = read(tmp_path, monkeypatch, GOOD)
    assert (claim.claim_id, claim.kind, claim.statement) == ("many-heads", "finding", "heads are many")
    assert (claim.unit, claim.evidence, claim.empty, claim.control, claim.changed) == (None,) * 5
    assert (claim.quantity, claim.within, claim.seeds) == ("mean", (-inf, inf), 3)


def test_a_claim_names_its_source(tmp_path, monkeypatch):
    source = read(tmp_path, monkeypatch, GOOD).source
    framework = "A Mathematical Framework for Transformer Circuits"
    assert source.words == f"Elhage et al. 2021, {framework}, Two-Layer Attention-Only Transformers"
    assert source.url == "https://transformer-circuits.pub/2021/framework/index.html"
    assert source.texts.startswith("Composição de Attention Heads em Transformers and Análise Teórica")


def test_no_claim_names_a_source_by_its_number():
    for claim in CLAIMS.values():
        assert not re.search(r"\b00[0-4]\b", f"{claim.source} {claim.statement}"), claim.claim_id


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("-- needs: total_heads > 0\n", "", "the header must have statement, .*, got: no needs. Add it."),
        ("-- source", "-- sorce", "a header may have statement, .*, got: sorce. Remove or rename it."),
        ("-- source: ", "--source ", "a header line must be `-- name: text`, or .*, got: --source elhage-2021, .*"),
        (
            "elhage-2021",
            "elhage-2020",
            "source and texts must be keys of sources.toml: .*, got: elhage-2020. Correct it",
        ),
        (
            "-- needs",
            "-- kind: opinion\n-- needs",
            "kind must be one of finding, description, self-check, got: opinion.",
        ),
        (
            "-- needs",
            "-- kind: description\n-- needs",
            "a claim must have a rule, and a description none, got: a rule.",
        ),
        (
            "-- needs",
            "-- kind: self-check\n-- needs",
            "the rule of a self-check must be .*, got: holds if estimate > 0.5.",
        ),
        ("-- needs", "-- seeds: 2\n-- needs", "seeds must be a number from 3 on, got: 2."),
        ("-- needs", "-- range: 1 to 0\n-- needs", "range must be like `0 to 1` or `-inf to 1`, got: 1 to 0."),
        (
            "-- needs",
            "-- quantity: sum\n-- needs",
            "quantity must be one of mean, fraction, share, correlation, got: sum.",
        ),
        ("if estimate > 0.5", "if every model > 0.5", "rule must be `holds if estimate > 0.2` .*, got: holds if every"),
        ("> 0.5", "> half", "rule must be `holds if estimate > 0.2` .*, got: holds if estimate > half."),
        (
            "SELECT model_id",
            "SELEC model_id",
            "below its header must be one SELECT, got: Parser Error: syntax error .*",
        ),
        ("SELECT model_id", "SELECT 1; SELECT model_id", "below its header must be one SELECT, got: SELECT, SELECT."),
        (GOOD[GOOD.index("SELECT") :], "", "below its header must be one SELECT, got: nothing."),
        (
            "SELECT model_id",
            "DROP TABLE heads; SELECT model_id",
            "below its header must be one SELECT, got: DROP, SELECT.",
        ),
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
        ("seed / 10", "x / 10", "its SELECT must run and give numbers or booleans, got: Binder Error"),
        (
            "seed / 10 + 0.9",
            "'much'",
            "its SELECT must run and give numbers or booleans, got: Conversion Error: .*much",
        ),
        ("AS value", "AS number", "its SELECT must give the column value, got: model_id, number. Name it so."),
        ("model_id, ", "seed, ", "its SELECT must give the column model_id, got: seed, value. Name it so."),
        ("model_id, ", "1 AS configuration, ", "its SELECT must give the column seed, got: configuration, value."),
        (
            "-- needs",
            "-- control: untrained\n-- needs",
            "its SELECT must give the column control, got: model_id, value.",
        ),
        ("-- needs", "-- quantity: share\n-- needs", "its SELECT must give the column counted, got: model_id, value."),
        ("seed / 10", "'nan'::DOUBLE", "values must be numbers, got: NaN for s. Give NULL where there is no value."),
    ],
)
def test_a_claim_that_cannot_be_asked_is_refused_in_one_line(tmp_path, monkeypatch, database, old, new, message):
    connection, fill_in = database
    study = Tables("s")
    for seed in range(3):
        study.model(seed=seed)
    fill_in(study)
    assert row_of(connection, read(tmp_path, monkeypatch, GOOD), "s")["verdict"] == "holds"
    wrong = read(tmp_path, monkeypatch, GOOD.replace(old, new))
    with pytest.raises(UserError, match=f"^reports/claims/many-heads.sql: {message}") as refusal:
        decide(connection, [wrong], "s")
    assert "\n" not in str(refusal.value)


def test_every_evidence_is_a_heading_of_the_report():
    templates = (places.ROOT / "tasks" / "report" / "sections").rglob("*.jinja")
    headings = {h for path in templates for h in re.findall(r'page\.part\("#+ (.+?)"\)', path.read_text())}
    assert {claim.evidence for claim in CLAIMS.values() if claim.evidence} <= headings


def test_every_select_can_be_pasted_into_headstream_sql():
    for claim in CLAIMS.values():
        assert not set(claim.select.replace("$study", "")) & set('"$`!\\'), claim.claim_id
