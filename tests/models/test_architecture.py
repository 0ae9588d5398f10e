import pytest
from pydantic import ValidationError

from models.architecture import Architecture


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"n_heads": 3, "d_model": 64}, "n_heads must divide d_model, got n_heads=3, d_model=64. Choose 1, 2, 4"),
        ({"n_heads": [2, 2, 2], "d_head": 8}, "one count a layer, got 3 counts for n_layers=2"),
        ({"n_heads": [2, 2]}, "d_head must be set when n_heads is a list"),
        ({"n_heads": 0}, "n_heads must be at least 1"),
        ({"positions": "rotary", "d_head": 7}, "d_head must be even with rotary positions, got 7"),
        ({"d_mlp": 64}, "d_mlp needs a feed-forward layer, got d_mlp=64"),
    ],
)
def test_impossible_architectures_are_refused(fields, message):
    with pytest.raises(ValidationError, match=message.replace("[", r"\[")):
        Architecture(**fields)


def test_widths_are_resolved_once():
    a = Architecture(n_heads=4, d_model=128, feed_forward="gelu", d_value=24)
    assert (a.head_width, a.value_width, a.mlp_width) == (32, 24, 512)
    assert a.heads_per_layer == (4, 4)


@pytest.mark.parametrize(
    ("fields", "name"),
    [({}, "2L4H"), ({"n_layers": 0}, "0L"), ({"n_heads": (0, 3), "d_head": 8}, "2L0-3H"), ({"n_layers": 1}, "1L4H")],
)
def test_names(fields, name):
    assert Architecture(**fields).name == name
