"""What is declared of each parameter, and that it stays declared whatever is done to the model."""

import copy
import pickle

import pytest
import torch
from random_models import D_VOCAB, random_model
from torch import nn
from torch.func import functional_call

from headstream.models.architecture import Architecture
from headstream.models.parameters import declared_parameters
from headstream.models.transformer import Transformer

EVERYTHING = {
    **{"normalization": "layernorm", "feed_forward": "gelu", "biases": True, "qk_normalization": True},
    **{"gates": "dynamic"},
}
# Of each name: its role, whether it takes part in matrix products, and the axis that is the head.
EXPECTED = {
    **dict.fromkeys(("W_Q", "W_K", "W_V"), ("reading", True, 0)),
    **dict.fromkeys(("W_K_shared", "W_V_shared"), ("reading", True, None)),
    "W_O": ("writing", True, 0),
    **dict.fromkeys(("W_in", "W_gate"), ("reading", True, None)),
    "W_out": ("writing", True, None),
    **dict.fromkeys(("W_E", "W_pos"), ("embedding", False, None)),
    "W_U_free": ("embedding", True, None),
    "position_bias": ("position_bias", True, 0),
    **dict.fromkeys(("b_Q", "b_K", "b_V"), ("vector", True, 0)),
    **dict.fromkeys(("b_K_shared", "b_V_shared"), ("vector", True, None)),
    **dict.fromkeys(("b_O", "b_in", "b_gate", "b_out", "b_U"), ("vector", True, None)),
    **dict.fromkeys(("weight", "bias"), ("vector", False, None)),
    **dict.fromkeys(("log_alpha", "direction", "offset"), ("gate", False, 0)),
}


def declarations(model):
    return [(name, declaration) for name, _, declaration in declared_parameters(model)]


def test_what_is_declared():
    seen = set()
    changed = ({"positions": "learned"}, {"positions": "learned_shortformer"}, {"gates": "hard_concrete"})
    for changes in ({}, *changed, {"n_key_value_heads": 1, "feed_forward": "swiglu"}):
        model = random_model(**EVERYTHING | changes)
        assert [name for name, _ in declarations(model)] == [name for name, _ in model.named_parameters()]
        for name, parameter, own in declared_parameters(model):
            short = name.rpartition(".")[2]
            assert (own.role, own.in_products, own.head_axis) == EXPECTED[short]
            assert own.head_axis is None or parameter.shape[own.head_axis] == 3
            seen.add(short)
    assert seen == set(EXPECTED)


def test_only_matrices_are_drawn():
    before = Transformer(Architecture(**EVERYTHING), D_VOCAB)
    after = copy.deepcopy(before).initialize(torch.Generator().manual_seed(0))
    starts = {name: own.start for name, own in declarations(before)}
    assert {name.rpartition(".")[2] for name, start in starts.items() if start is None} == {
        name for name, (role, *_) in EXPECTED.items() if role in ("reading", "writing", "embedding")
    } - {"W_pos", "W_K_shared", "W_V_shared", "W_gate"}
    for name, parameter in after.named_parameters():
        assert starts[name] is None or (parameter == starts[name]).all()


def test_declarations_outlive_what_is_done_to_a_model():
    model = random_model(**EVERYTHING)
    expected = declarations(model)
    copied, pickled = copy.deepcopy(model).float(), pickle.loads(pickle.dumps(model))
    with torch.device("meta"):
        loaded = Transformer(model.architecture, D_VOCAB)
    loaded.load_state_dict(model.state_dict(), assign=True)
    functional_call(model, {"W_E": model.W_E * 2}, (torch.zeros(1, 3, dtype=torch.int64),))
    assert declarations(model) == declarations(copied) == declarations(pickled) == declarations(loaded) == expected


@pytest.mark.parametrize("part", ["layers.1", "layers.1.attention", "final_norm"])
@pytest.mark.parametrize("undeclared", [nn.Parameter(torch.zeros(3)), nn.Linear(3, 2)])
def test_a_parameter_without_declaration_is_an_error(part, undeclared):
    model = random_model()
    model.get_submodule(part).new = undeclared
    with pytest.raises(TypeError, match=rf"the parameter {part}\.new.* has no declaration"):
        model.initialize(torch.Generator())
