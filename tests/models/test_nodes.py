"""Nodes and their labels."""

import pytest

from headstream.models.nodes import MLP, Head, Terminal, parse_node

LABELS = {
    "L1H0": Head(1, 0),
    "L12H30": Head(12, 30),
    "L0MLP": MLP(0),
    "embedding": Terminal.EMBEDDING,
    "position": Terminal.POSITION,
    "bias": Terminal.BIAS,
    "logits": Terminal.LOGITS,
}


@pytest.mark.parametrize("label", LABELS)
def test_a_label_and_its_node_give_each_other(label):
    assert parse_node(label) == LABELS[label]
    assert type(parse_node(label)) is type(LABELS[label])
    assert str(LABELS[label]) == label


@pytest.mark.parametrize("text", ["", "L1", "L1H", "L1H0 ", "xL1H0", "L1H0 > L2H0", "L1MLPs", "other heads"])
def test_other_text_is_no_label(text):
    with pytest.raises(ValueError, match="no node"):
        parse_node(text)
