"""`headstream claims`, and what `headstream plan` says of claims: no study has to run for them."""

import json
from pathlib import Path

import pytest
from claimed_studies import CASES, Tables
from test_command_line import call

from headstream.tasks import places
from headstream.tasks.results.tables import table_named, write_table
from headstream.tasks.storage.artifact import Artifact, Spec
from headstream.tasks.storage.store import Store


@pytest.fixture(autouse=True)
def results(monkeypatch, tmp_path) -> None:
    """A store with a record of the study `quick`, in which one claim holds."""
    monkeypatch.setenv("HEADSTREAM_HOME", str(tmp_path))
    record(CASES["paths-sum"].tables("quick", [1e-6, 2e-6])[0])


def record(tables: Tables, version: str = "v1", study: str = "quick") -> None:
    """Puts a study's record into the store, and an artifact of each model or corpus that has rows."""
    by_subject: dict[tuple[str, str], dict[str, list]] = {("study", study): {}}
    for name, rows in tables.items():
        key = table_named(name).key[0]
        for row in rows:
            by_subject.setdefault((key, row[key]), {}).setdefault(name, []).append(row)
    own = by_subject.pop(("study", study))
    inputs = {}
    for (key, subject), of_subject in by_subject.items():
        inputs[subject] = put(Spec("made", version, {key: subject}, {}, {}), of_subject, {key: subject})
    put(Spec("study", version, {}, inputs, {}), own, {"study": study})


def put(spec: Spec, tables: Tables, facts: dict[str, str]) -> Artifact:
    """Puts an artifact with these tables into the store."""

    def write(folder: Path) -> dict[str, str]:
        for name, rows in tables.items():
            write_table(folder, name, rows)
        return facts

    return Store(places.store_folder()).build(spec, write)


def test_claims_in_words(monkeypatch, capsys):
    code, out, _ = call(monkeypatch, capsys, "claims", "quick")
    assert code == 0
    heading, _, first, *others = out.splitlines()
    assert heading.split() == ["verdict", "claim", "finding"]
    assert first.split(maxsplit=2) == ["passes", "self-checks", "1 of 1 pass"]
    assert len(others) == len(CASES) - 1
    assert "not tested   direct-is-bigram" in out
    assert "lacks models of zero layers" in out


def test_claims_as_they_are_stored(monkeypatch, capsys):
    code, out, _ = call(monkeypatch, capsys, "claims", "quick", "--format", "json")
    assert code == 0
    first = json.loads(out)[0]
    assert (first["claim_id"], first["verdict"], first["estimate"], first["n"]) == ("paths-sum", "passes", 2e-6, 2)
    assert first["rule"] == "holds if every model < 1e-4"
    assert first["source"].startswith("Elhage et al. 2021, A Mathematical Framework for Transformer Circuits, ")
    assert first["source_url"] == "https://transformer-circuits.pub/2021/framework/index.html"


def test_models_that_learned_nothing_are_said_first(monkeypatch, capsys, tmp_path):
    tables, _ = CASES["virtual-heads-small"].tables("quick", [0.1, 0.11, 0.12])
    for row in tables["evaluations"]:
        row["validation_loss_nats"] = 62.5
    record(tables, "v2")
    code, out, _ = call(monkeypatch, capsys, "claims", "quick")
    assert code == 0
    assert out.startswith(
        "These models learned too little to say what training does: none predicts better than bigrams"
    )
    assert "undertrained: all else alike" in out
    assert "holds" not in out


def test_a_new_claim_needs_no_run(monkeypatch, capsys, tmp_path):
    call(monkeypatch, capsys, "claims", "quick")
    monkeypatch.setattr(places, "CLAIMS", tmp_path)
    header = ("statement: x", "source: elhage-2021", "needs: true", "lacks: models")
    lines = [f"-- {line}\n" for line in (*header, "rule: holds if every model < 4")]
    select = "SELECT 3 AS value"
    (tmp_path / "mine.sql").write_text("".join(lines) + select)
    assert call(monkeypatch, capsys, "claims", "quick")[1].splitlines()[2:] == ["holds     mine    3, 1 model"]
    (tmp_path / "mine.sql").write_text("".join(lines))
    study = tmp_path / "one.toml"
    study.write_text(f'name = "one"\ncorpus.paths = ["{study}"]\n')
    for arguments in (("claims", "quick"), ("plan", str(study))):
        code, out, err = call(monkeypatch, capsys, *arguments)
        assert (code, out) == (2, "")
        assert err.startswith("headstream: reports/claims/mine.sql: below its header must be one SELECT, got: nothing.")
        assert err.count("\n") == 1


def test_claims_of_a_study_that_has_not_run(monkeypatch, capsys):
    code, out, err = call(monkeypatch, capsys, "claims", "smoke")
    assert (code, out) == (2, "")
    assert "got 'smoke'. Run `headstream run smoke` first." in err


def test_claims_has_help_with_an_example(monkeypatch, capsys):
    code, out, _ = call(monkeypatch, capsys, "claims", "--help")
    assert code == 0
    assert "Example: headstream claims" in out


def test_plan_says_which_claims_the_study_can_decide(monkeypatch, capsys, tmp_path):
    study = tmp_path / "two.toml"
    study.write_text(
        f"""
        name = "two"
        corpus.paths = ["{study}"]
        grid = {{ n_layers = [1, 2, 6], feed_forward = ["none", "relu"], seed = [0, 1, 2, 3, 4] }}
        model = {{ d_model = 64, n_heads = 4, n_ctx = 32 }}
        """
    )
    code, out, err = call(monkeypatch, capsys, "plan", str(study), "--all")
    assert code == 0, err
    decided = out.partition("It can decide ")[2].partition("it lacks")[0].replace("\n", " ")
    # 2 layers with feed-forward layers have as many matrices as 6 without
    for claim_id in ("paths-sum", "terms-add", "induction-needs-two-layers", "feed-forward-adds"):
        assert f" {claim_id}" in decided
    for claim_id in ("direct-is-bigram", "more-heads-diminish", "dynamic-heads"):
        assert claim_id not in decided
    assert "models of zero layers" in out
    assert f"of {len(CASES)} claims" in out
    brief = call(monkeypatch, capsys, "plan", str(study))[1]
    assert "models of zero layers" not in brief
    assert f"for the other {len(CASES) - decided.count(',') - 1}," in brief


def test_plan_says_that_one_seed_is_too_few(monkeypatch, capsys, tmp_path):
    study = tmp_path / "one.toml"
    study.write_text(f'name = "one"\ncorpus.paths = ["{study}"]\ngrid.n_layers = [1, 2]\n')
    code, out, _ = call(monkeypatch, capsys, "plan", str(study), "--all")
    assert code == 0
    lacking = out.partition(" 3 seeds or more ")[2].partition("seeds or more")[0]
    assert "induction-needs-two-layers" in lacking


@pytest.mark.parametrize(("tokens", "warns"), [(200_000, True), (5_000_000, False)])
def test_plan_warns_of_trainings_too_short_to_find_anything(monkeypatch, capsys, tmp_path, tokens, warns):
    study = tmp_path / "short.toml"
    study.write_text(f'name = "short"\ncorpus.paths = ["{study}"]\ntraining.tokens = {tokens}\n')
    code, out, _ = call(monkeypatch, capsys, "plan", str(study))
    assert code == 0
    assert ("may not get below the loss of bigrams" in " ".join(out.split())) == warns
