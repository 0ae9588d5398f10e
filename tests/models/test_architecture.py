import pytest
from pydantic import ValidationError

from headstream.models.architecture import Architecture
from headstream.models.architecture_config import LATER


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"n_heads": 3, "d_model": 64}, "n_heads must divide d_model, got n_heads=3, d_model=64. Choose 1, 2, 4"),
        ({"n_heads": [2, 2, 2], "d_head": 8}, "one count per layer, got 3 counts for n_layers=2"),
        ({"n_heads": [2, 2]}, "d_head must be set when n_heads is a list"),
        ({"n_heads": 0}, "n_heads must be at least 1"),
        ({"positions": "rotary", "d_head": 7}, "d_head must be even with rotary positions, got 7"),
        ({"d_mlp": 64}, "d_mlp needs a feed-forward layer, got d_mlp=64"),
        ({"attention_window": 8}, "attention_window needs attention = 'local' or 'strided', got attention_window=8"),
        (
            {"attention": "local", "stride": 2},
            "stride needs attention = 'strided', got stride=2 with attention='local'",
        ),
        ({"attention": "strided", "top_k": 2}, "top_k needs attention = 'top_k', got top_k=2"),
        (
            {"attention": "local", "attention_window": 129},
            "must fit n_ctx=128, got 129 keys 1 apart. Choose 128 or few",
        ),
        ({"attention": "strided", "attention_window": 33}, "must fit n_ctx=128, got 33 keys 4 apart. Choose 32 or few"),
        ({"attention": "local", "attention_window": 0}, "greater than or equal to 1"),
        ({"attention": "strided", "stride": 0}, "greater than or equal to 1"),
        ({"windowed_rotary_base": 50.0}, "windowed_rotary_base needs windowed_layers, got windowed_rotary_base=50"),
        ({"rotary_stretched_wavelengths": [4.0, 2.0]}, "two ascending numbers above 0, got [4.0, 2.0]"),
        ({"windowed_layers": [0]}, "windowed_layers needs attention = 'local' or 'strided'"),
        ({"attention": "local", "windowed_layers": [2]}, "different layers of n_layers=2 in ascending order"),
        ({"attention": "local", "windowed_layers": [1, 0]}, "counted from 0, got [1, 0]"),
        ({"attention": "top_k", "top_k": 129}, "top_k must be at most n_ctx=128, got 129. Choose fewer"),
    ],
)
def test_impossible_architectures_are_refused(fields, message):
    with pytest.raises(ValidationError, match=message.replace("[", r"\[")):
        Architecture(**fields)


def test_widths_are_resolved_once():
    a = Architecture(n_heads=4, d_model=128, feed_forward="gelu", d_value=24)
    assert (a.head_width, a.value_width, a.mlp_width) == (32, 24, 512)
    assert a.heads_per_layer == (4, 4)


@pytest.mark.parametrize("attention", ["local", "strided", "top_k"])
@pytest.mark.parametrize("n_ctx", [2, 3, 31, 128, 1000])
def test_sparse_attention_has_defaults_that_fit(attention, n_ctx):
    a = Architecture(attention=attention, n_ctx=n_ctx)
    assert a.visible_distances[-1] < n_ctx
    assert a.kept_keys == (min(32, n_ctx) if attention == "top_k" else None)
    if a.windowed and n_ctx >= 128:
        assert len(a.visible_distances) == 32


@pytest.mark.parametrize(
    ("fields", "name"),
    [({}, "2L4H"), ({"n_layers": 0}, "0L"), ({"n_heads": (0, 3), "d_head": 8}, "2L0-3H"), ({"n_layers": 1}, "1L4H")],
)
def test_names(fields, name):
    assert Architecture(**fields).name == name


def test_later_options_are_named_only_where_they_are_chosen():
    """So that models which were there before them keep their keys and ids."""
    assert Architecture().as_kept().keys() == Architecture.model_fields.keys() - {*LATER}
    chosen = Architecture(attention="local", windowed_layers=[1])
    assert chosen.as_kept()["windowed_layers"] == [1]
    assert Architecture.model_validate(chosen.as_kept()) == chosen


def test_a_layer_has_the_window_or_sees_all():
    a = Architecture(n_layers=3, attention="local", attention_window=4, windowed_layers=[0, 2])
    assert [len(a.of_layer(i).visible_distances) for i in range(3)] == [4, 128, 4]
