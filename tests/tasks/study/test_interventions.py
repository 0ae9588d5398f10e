"""Interventions in a study file: the models that they make, what those are called, and what is refused in one line."""

import pytest

from headstream.models.nodes import MLP, Edge, Head
from headstream.tasks.errors import UserError
from headstream.tasks.study.schema import parse_study
from headstream.tasks.study.training_interventions import InterventionConfig, passes_at

SILENCE = {"kind": "silence", "heads": ["L0H1"]}
ROLE = {"kind": "silence", "heads": "induction", "from": 1000}


def study(interventions, **fields):
    variants = {"base": {}, "done": {"interventions": interventions}}
    return parse_study("s.toml", {"name": "s", "variants": variants, **fields})


def test_each_head_of_a_layer_is_a_model_named_by_what_is_done_to_it():
    labels = [cell.label for cell in study([{"kind": "silence", "heads": "each of layer 1"}]).cells]
    assert labels == ["variant=base", *(f"variant=done interventions=[silence L1H{head}]" for head in range(4))]


def test_an_axis_of_interventions_is_an_axis_like_any_other():
    fields = {"name": "s", "grid": {"seed": [0, 1], "interventions": [[], [SILENCE, {**SILENCE, "kind": "freeze"}]]}}
    labels = [cell.label for cell in parse_study("s.toml", fields).cells]
    done = "[silence L0H1; freeze L0H1]"
    assert labels == [f"seed={seed} interventions={i}" for seed in (0, 1) for i in ("[none]", done)]


def test_only_models_that_have_interventions_have_them_in_their_key():
    base, done = study([SILENCE]).cells
    assert "interventions" not in base.trained_as["training"]
    assert done.trained_as["training"]["interventions"][0]["heads"] == ["L0H1"]
    assert (base.passes, done.passes) == ("plain", "silenced")
    released = study([{"kind": "clamp", "heads": ["L0H1"], "pattern": "self", "until": 9}]).cells[1]
    assert released.passes == "plain"
    assert study([{"kind": "cut", "edges": ["L0 -> L1.K"]}]).cells[1].passes == "changed"


def test_edges_of_whole_layers_are_those_of_all_their_heads_and_feed_forward_layers():
    cut = InterventionConfig.model_validate({"kind": "cut", "edges": ["L0 -> L1H1.V", "L0H1 -> L1.Q"]})
    (done,) = study([cut.model_dump()], model={"n_heads": 2, "feed_forward": "relu"}).cells[1:]
    edges = passes_at(done.training.interventions, done.architecture, 0, -1).cut
    by_head = {Edge(writer, Head(1, 1), "V") for writer in (Head(0, 0), Head(0, 1), MLP(0))}
    assert edges == by_head | {Edge(Head(0, 1), Head(1, head), "Q") for head in (0, 1)}


def test_an_intervention_acts_from_its_first_token_until_its_last():
    own = InterventionConfig.model_validate({**SILENCE, "from": 10, "until": 20})
    assert [own.acts_at(tokens) for tokens in (9, 10, 19, 20)] == [False, True, True, False]
    assert own.in_words == "silence L0H1 from 10 until 20"


@pytest.mark.parametrize(
    ("interventions", "message"),
    [
        ([{"kind": "silence", "heads": ["L0H4"]}], "silence L0H4: there must be such a head"),
        ([{"kind": "silence", "heads": "each of layer 2"}], "there must be such a head"),
        ([{"kind": "silence", "heads": "L0H1"}], "heads must be a list"),
        ([{"kind": "silence", "heads": ["H1"]}], "heads must be like 'L0H1', got 'H1'"),
        ([{"kind": "silence"}], "silence needs heads"),
        ([{**SILENCE, "pattern": "self"}], "silence has no pattern"),
        ([{"kind": "cut", "edges": ["L1H0 -> L0H0.K"]}], "an edge must lead to a later layer"),
        ([{"kind": "cut", "edges": ["L0H0 -> L1H0"]}], "edges must be like"),
        ([{"kind": "cut", "edges": ["L0MLP -> L1H0.K"]}], "no feed-forward layers"),
        ([{**SILENCE, "from": 20, "until": 10}], "until must be after from"),
        ([{**SILENCE, "from": 5_000_000}], "must begin before the end of training"),
        ([{"kind": "clamp", "heads": ["L0H1"], "pattern": "next"}], "pattern: must be 'previous'"),
        ([{"kind": "clamp", "heads": ["L0H1"], "pattern": p} for p in ("self", "first")], "L0H1 is clamped twice"),
        ([{**SILENCE, "form": 3}], "has no field 'form'. Did you mean 'from'?"),
        ([{**SILENCE, "from": "3"}], "from: must be a whole number, got '3'"),
        ({"kind": "silence"}, "must be a list"),
    ],
)
def test_what_has_no_meaning_is_refused_in_one_line(interventions, message):
    with pytest.raises(UserError) as refused:
        study(interventions)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("interventions", "model", "message"),
    [
        ({"kind": "clamp", "heads": ["L0H1"], "pattern": "self"}, {"attention": "local"}, "attention = 'full'"),
        (
            {"kind": "cut", "edges": ["L0 -> L1.K"]},
            {"normalization": "rmsnorm", "normalization_place": "post"},
            "normalization_place = 'pre'",
        ),
        ({"kind": "freeze", "heads": ["L0H1"]}, {"n_key_value_heads": 2}, "keys and values of the head.s own"),
    ],
)
def test_what_an_architecture_cannot_have_is_refused_by_name(interventions, model, message):
    with pytest.raises(UserError, match=message):
        study([interventions], model=model)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"variants": {"done": {"interventions": [ROLE]}}}, "needs the same model without interventions"),
        ({"analysis": {"stages": ["redundancy"]}}, "needs the stage 'behaviour'"),
        ({"grid": {"seed": {"until": "decided"}}}, "needs a list of seeds"),
    ],
)
def test_a_head_named_by_its_role_needs_a_model_that_tells_it(fields, message):
    with pytest.raises(UserError, match=message):
        parse_study("s.toml", {"name": "s", "variants": {"base": {}, "done": {"interventions": [ROLE]}}, **fields})
