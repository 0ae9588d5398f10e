import pytest

from flows.study_schema import AXES, parse_study
from models.architecture import Architecture
from tasks.errors import RequestError
from tasks.study_source import read_study_file, shipped_studies
from tasks.training_config import TrainingConfig


def refused(**content) -> str:
    with pytest.raises(RequestError) as caught:
        parse_study("my.toml", {"name": "mine", **content})
    message = str(caught.value)
    assert message.startswith("my.toml: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", shipped_studies())
def test_shipped_studies_are_valid(name):
    study = parse_study(*read_study_file(name))
    assert study.name == name
    assert study.question
    assert len(study.cells) >= 1


def test_any_model_or_training_field_can_be_an_axis():
    assert not set(Architecture.model_fields) & set(TrainingConfig.model_fields)  # a name means one thing
    study = parse_study(
        "s", {"name": "s", "grid": {"d_head": [8, 16], "tokens": [100, 200, 300], "biases": [True, False]}}
    )
    assert len(study.cells) == 12
    assert {(c.architecture.d_head, c.training.tokens, c.architecture.biases) for c in study.cells} == {
        (d, t, b) for d in (8, 16) for t in (100, 200, 300) for b in (True, False)
    }
    assert study.cells[0].label == "d_head=8 tokens=100 biases=True"
    assert len(AXES) == len(Architecture.model_fields) + len(TrainingConfig.model_fields)


def test_shared_fields_reach_every_cell_and_the_rest_keep_their_defaults():
    study = parse_study(
        "s", {"name": "s", "grid": {"seed": [0, 1]}, "model": {"d_model": 96}, "training": {"tokens": 7}}
    )
    assert [c.training.seed for c in study.cells] == [0, 1]
    assert all(c.architecture.d_model == 96 and c.training.tokens == 7 for c in study.cells)
    assert study.cells[0].training.batch_size == TrainingConfig().batch_size


def test_variants_are_each_combined_with_the_whole_grid():
    study = parse_study(
        "s",
        {
            "name": "s",
            "grid": {"seed": [0, 1]},
            "model": {"d_model": 96, "n_heads": 2},
            "variants": {"plain": {}, "wide": {"d_head": 96, "tokens": 7}, "one-head": {"n_heads": 1}},
        },
    )
    assert [c.label for c in study.cells[:3]] == [
        "variant=plain seed=0",
        "variant=plain seed=1",
        "variant=wide d_head=96 tokens=7 seed=0",
    ]
    assert [c.architecture.head_width for c in study.cells] == [48, 48, 96, 96, 96, 96]
    assert [c.architecture.n_heads for c in study.cells] == [2, 2, 2, 2, 1, 1]
    assert study.cells[2].training.tokens == 7


def test_bad_variants_are_refused():
    assert "variant 'a' must name fields of [model] or [training], got 'heads'." in refused(
        variants={"a": {"heads": 1}}
    )
    assert "seed must be either an axis or of a variant" in refused(grid={"seed": [0]}, variants={"a": {"seed": 1}})
    assert "cell variant=a n_heads=3: n_heads must divide d_model" in refused(variants={"a": {"n_heads": 3}})
    assert "got 'A b'" in refused(variants={"A b": {}})
    both = {"grid": {"seed": list(range(120))}, "variants": {"a": {}, "b": {}}}
    assert "at most max_models=200 cells, got 240" in refused(**both)


def test_an_unknown_key_names_the_nearest_right_one():
    assert "[training] has no field 'token'. Did you mean 'tokens'?" in refused(training={"token": 5})
    assert "[model] has no field 'layers'. Did you mean 'n_layers'?" in refused(model={"layers": 5})
    assert "no field 'gird'. Did you mean 'grid'?" in refused(gird={})
    assert "got 'n_layer'. Did you mean 'n_layers'?" in refused(grid={"n_layer": [1]})


def test_bad_values_say_what_must_hold_and_what_came():
    assert "[corpus] validation_fraction: must be less than 1, got 3." in refused(corpus={"validation_fraction": 3})
    assert "[model] d_model: must be a valid integer" in refused(model={"d_model": "wide"})
    assert "got 'Quick Study!'" in refused(name="Quick Study!")
    assert "cell n_layers=1 tokens=-5: tokens: must be greater than or equal to 1, got -5." in refused(
        grid={"n_layers": [1], "tokens": [-5]}
    )
    assert "[grid] seed: must be a valid list, got 3." in refused(grid={"seed": 3})


def test_bad_grids_are_refused():
    assert "cell n_heads=3: n_heads must divide d_model" in refused(grid={"n_heads": [1, 3]})
    assert "at most max_models=200 cells, got 201" in refused(grid={"seed": list(range(201))})
    assert "at least one value" in refused(grid={"seed": []})
    assert "each value once" in refused(grid={"seed": [1, 1]})
    assert "either an axis or fixed" in refused(grid={"n_layers": [1]}, model={"n_layers": 2})


def test_missing_name():
    with pytest.raises(RequestError, match="name must be given"):
        parse_study("s", {})


def test_study_files_are_found_or_refused(tmp_path):
    with pytest.raises(RequestError, match="Did you mean quick"):
        read_study_file("quikc")
    broken = tmp_path / "broken.toml"
    broken.write_text("name = ")
    with pytest.raises(RequestError, match=r"must be TOML, got broken\.toml"):
        read_study_file(str(broken))
    broken.write_bytes(b"name = '\xff'")
    with pytest.raises(RequestError, match="must be TOML"):
        read_study_file(str(broken))
