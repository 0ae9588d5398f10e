import math
from collections.abc import Iterator
from datetime import date, time
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from annotated_types import Le, Lt
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from headstream.models.architecture import Architecture
from headstream.tasks.errors import UserError
from headstream.tasks.studies.known_studies import find_study
from headstream.tasks.study.aliases import ALIASES
from headstream.tasks.study.analyses import ANALYSES
from headstream.tasks.study.analyses.pruning_config import IterativeMethod, Method
from headstream.tasks.study.mistakes import _fields, section_of
from headstream.tasks.study.schema import AXES, ModelSection, Study, TrainingSection, parse_study, read_study
from headstream.tasks.study.sources import shipped_studies
from headstream.tasks.study.training_config import TrainingConfig


def refused(**content) -> str:
    with pytest.raises(UserError) as caught:
        parse_study("my.toml", {"name": "mine", **content})
    message = str(caught.value)
    assert message.startswith("my.toml: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize("name", shipped_studies())
def test_shipped_studies_are_valid(name):
    study = read_study(find_study(name))
    assert study.name == name
    assert study.question
    assert study.n_models >= 1


def test_mistakes_in_one_of_several_sections_say_which():
    good = {"name": "a", "path": "x"}
    assert refused(models=[good, {"name": "b", "path": "y", "tokeniser": "z"}]) == (
        "my.toml: [[models]] 2: has no field 'tokeniser'. Did you mean 'tokenizer'?"
    )
    assert refused(models=[{"name": "a b", "path": "x"}]).startswith("my.toml: [[models]] 1: name: must be 1 to 32 of")
    assert refused(models=[{"name": "a"}]) == "my.toml: [[models]] 1: path is missing. Add it."


@pytest.mark.parametrize("source", ["folder", ["sotu", "folder"], 3, [["sotu"]]])
def test_a_source_that_is_not_built_in(source):
    assert refused(corpus={"source": source}) == (
        "my.toml: [corpus] source: must be 'python-stdlib' or 'sotu', or a list of them,"
        f" got {source!r}. For your own text, give paths instead."
    )


def test_a_source_and_paths_of_ones_own_exclude_each_other():
    assert "exactly one of source and paths must be given, got source = 'sotu' and paths = ['x']" in refused(
        corpus={"source": "sotu", "paths": ["x"]}
    )
    for corpus in ({"paths": []}, {"source": []}, {"source": [], "paths": []}):
        assert "source and paths are both empty." in refused(corpus=corpus)


def test_mistakes_of_a_value_that_may_be_of_several_types_count_once():
    message = refused(models=[{"name": "a", "path": 3}])
    assert message.startswith("my.toml: [[models]] 1: path: must be")
    assert "more)" not in message


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
    assert "seed of 'a' must be a list, since it is an axis of [grid]" in refused(
        grid={"seed": [0]}, variants={"a": {"seed": 1}}
    )
    assert "cell variant=a n_heads=3: n_heads must divide d_model" in refused(variants={"a": {"n_heads": 3}})
    assert "got 'A b'" in refused(variants={"A b": {}})
    both = {"grid": {"seed": list(range(120))}, "variants": {"a": {}, "b": {}}}
    assert "at most max_models=200 cells, got 240" in refused(**both)


def test_an_unknown_key_names_the_nearest_right_one():
    assert "[training] has no field 'token'. Did you mean 'tokens'?" in refused(training={"token": 5})
    assert "[model] has no field 'layers'. Did you mean 'n_layers'?" in refused(model={"layers": 5})
    assert "no field 'gird'. Did you mean 'grid'?" in refused(gird={})
    assert "got 'n_layer'. Did you mean 'n_layers'?" in refused(grid={"n_layer": [1]})


def test_a_key_is_known_by_what_other_tools_call_it_and_in_every_section():
    assert "[training] has no field 'lr'. Did you mean 'learning_rate'?" in refused(training={"lr": 1})
    assert "got 'lr'. Did you mean 'learning_rate'?" in refused(grid={"lr": [1]})
    assert "[model] has no field 'LR'. Did you mean 'learning_rate' of [training]?" in refused(model={"LR": 1})
    assert "[training] has no field 'n_layers'. Did you mean 'n_layers' of [model]?" in refused(
        training={"n_layers": 1}
    )
    assert "no field 'vocab-size'. Did you mean 'vocabulary' of [tokenizer]?" in refused(**{"vocab-size": 1})
    fields = {name for _, name in _fields(Study)} | set(AXES) | set(Study.model_fields)
    assert set(ALIASES.values()) <= fields
    assert set(ALIASES) & fields == {"heads", "path", "steps"}  # fields of lists, meant otherwise elsewhere


def test_a_pattern_is_told_in_words():
    words = "must be 1 to 64 of a-z, 0-9, _ and -, a letter or digit first, got 'My Study'."
    assert f"name: {words}" in refused(name="My Study")
    assert "[variants] a name: must be 1 to 32 of a-z" in refused(variants={"A b": {}})
    assert "must be a path, without NUL" in refused(corpus={"paths": ["a\0"]})


def test_bad_values_say_what_must_hold_and_what_came():
    assert "[corpus] validation_fraction: must be less than 1, got 3." in refused(corpus={"validation_fraction": 3})
    assert "[model] d_model: must be a whole number, got 'wide'." in refused(model={"d_model": "wide"})
    assert "got 'Quick Study!'" in refused(name="Quick Study!")
    assert "cell n_layers=1 tokens=-5: tokens: must be greater than or equal to 1, got -5." in refused(
        grid={"n_layers": [1], "tokens": [-5]}
    )
    assert "[grid] seed: must be a list in [ ], got 3." in refused(grid={"seed": 3})


def test_bad_grids_are_refused():
    assert "cell n_heads=3: n_heads must divide d_model" in refused(grid={"n_heads": [1, 3]})
    assert "at most max_models=200 cells, got 201" in refused(grid={"seed": list(range(201))})
    assert "axis 'seed' has no values" in refused(grid={"seed": []})
    assert "cells seed=1 and seed=1 are the same model" in refused(grid={"seed": [1, 1]})
    assert "n_layers is both in [grid] and in [model] or [training]" in refused(
        grid={"n_layers": [1]}, model={"n_layers": 2}
    )


def test_a_model_comes_once_however_it_is_written():
    assert "cells n_layers=1 and n_layers=1 are the same" in refused(grid={"n_layers": [1, 1]})
    assert "cells variant=a learning_rate=1.0 and variant=b learning_rate=1.0" in refused(
        variants={"a": {"learning_rate": 1}, "b": {"learning_rate": 1.0}}
    )


def test_cells_are_labelled_with_what_their_fields_became():
    grid = {"n_layers": [2], "biases": [False], "learning_rate": [1], "n_heads": [[1, 2]], "d_head": [4]}
    (cell,) = parse_study("s", {"name": "s", "grid": grid}).cells
    assert cell.label == "n_layers=2 biases=False learning_rate=1.0 n_heads=[1, 2] d_head=4"


WRONG_TYPES = [
    ("training", {"tokens": True}, "[training] tokens: must be a whole number, got true."),
    ("training", {"seed": False}, "[training] seed: must be a whole number, got false."),
    (
        "training",
        {"tokens": "20000"},
        "[training] tokens: must be a whole number, got '20000'. Leave out the quotation",
    ),
    ("training", {"tokens": 1e6}, "[training] tokens: must be a whole number, got 1000000.0. Write 1000000."),
    ("training", {"learning_rate": "1e-3"}, "[training] learning_rate: must be a number, got '1e-3'. Leave out"),
    ("model", {"biases": 1}, "[model] biases: must be true or false, got 1."),
    ("model", {"rotary_base": True}, "[model] rotary_base: must be a number, got true."),
    ("model", {"n_heads": "4"}, "[model] n_heads: must be a whole number, got '4'."),
    ("model", {"n_heads": [4, True]}, "[model] n_heads, item 2: must be a whole number, got true."),
    ("grid", {"d_model": [32, "64"]}, "cell d_model=64: d_model: must be a whole number, got '64'."),
    ("grid", {"seed": [0, True]}, "cell seed=true: seed: must be a whole number, got true."),
    ("grid", {"seed": [date(2026, 1, 2)]}, "cell seed=2026-01-02: seed: must be a whole number, got 2026-01-02."),
    ("grid", {"seed": {"until": "decided", "at_most": True}}, "[grid.seed] at_most: must be a whole number, got true."),
    ("grid", {"seed": {"until": "decided", "at_most": 4}}, "[grid.seed] at_most: must be 3, 5, 9 or 17, got 4."),
    (
        "grid",
        {"seed": {"until": "decided", "at_most": 17.0}},
        "[grid.seed] at_most: must be a whole number, got 17.0. Write 17.",
    ),
    ("variants", {"a": {"biases": 0}}, "cell variant=a biases=0: biases: must be true or false, got 0."),
    ("corpus", {"paths": "a.txt"}, "[corpus] paths: must be a list in [ ], got 'a.txt'."),
    ("corpus", {"paths": ["a", 3]}, "[corpus] paths, item 2: must be text in quotation marks, got 3."),
    ("corpus", {"validation_fraction": "0.1"}, "[corpus] validation_fraction: must be a number, got '0.1'."),
    ("corpus", 3, "corpus: must be a table, got 3."),
    ("models", [3], "models, item 1: must be a table, got 3."),
    ("models", [{"name": "a", "path": []}], "[[models]] 1: path: must have at least 1 item, got []."),
    (
        "models",
        [{"name": "a", "path": ["x", 3]}],
        "[[models]] 1: path, item 2: must be text in quotation marks, got 3.",
    ),
    ("models", [{"name": "a", "path": "x", "untrained": "yes"}], "[[models]] 1: untrained: must be true or false"),
    ("analysis", {"stages": []}, "[analysis] stages: must have at least 1 item, got []."),
    ("analysis", {"probes": {"seed": False}}, "[analysis.probes] seed: must be a whole number, got false."),
    ("costs", {"n_ctx": [256, 512.0]}, "[costs] n_ctx, item 2: must be a whole number, got 512.0. Write 512."),
    ("question", date(2026, 11, 30), "question: must be text in quotation marks, got 2026-11-30."),
    ("question", [time(3)], "question: must be text in quotation marks, got [03:00:00]."),
    ("max_models", True, "max_models: must be a whole number, got true."),
]


@pytest.mark.parametrize(("section", "content", "message"), WRONG_TYPES)
def test_values_have_their_fields_types_and_are_told_as_a_study_file_has_them(section, content, message):
    assert refused(**{section: content}).startswith(f"my.toml: {message}")


def every_section(config: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield config
    for field in config.model_fields.values():
        inner, _ = section_of(field.annotation)
        if inner:
            yield from every_section(inner)


SECTIONS = dict.fromkeys([*every_section(Study), Architecture, TrainingConfig])


@pytest.mark.parametrize("config", SECTIONS, ids=lambda config: config.__name__)
def test_every_section_has_strict_types(config):
    assert config.model_config["strict"]
    assert config.model_config["extra"] == "forbid"


VALUES = [True, 0, 1, 17, 0.5, 1.0, 17.0, "1", "17", "true", date(2026, 1, 1), ["x"], [1], [1.0], ["1"], {"a": 1}]


def outer_types(annotation: Any) -> set[Any]:
    """Types that a field's values may have: of lists and tables, nothing of what they hold."""
    outer, inner = get_origin(annotation), get_args(annotation)
    if outer is Annotated:
        return outer_types(inner[0])
    if outer is Literal:
        return {type(value) for value in inner}
    if outer in (Union, UnionType):
        return set().union(*map(outer_types, inner))
    return {list} if outer is tuple else {outer or annotation}


@pytest.mark.parametrize("config", SECTIONS, ids=lambda config: config.__name__)
def test_no_field_takes_a_value_of_another_type(config):
    for name, field in config.model_fields.items():
        types = outer_types(field.annotation)
        if any(isinstance(each, type) and issubclass(each, BaseModel) for each in types):
            continue
        others = [value for value in VALUES if type(value) not in types | ({int} if float in types else set())]
        for value in others:
            with pytest.raises(ValidationError) as refused:
                config.model_validate({name: value})
            assert name in {error["loc"][0] for error in refused.value.errors()}, value


ABSURD = {
    "grid": [{"seed": list(range(150)), "tokens": list(range(1, 151))}, {"n_layers": [10**9]}, {"seed": [2**31]}],
    "model": [
        {"d_model": 10**9},
        {"n_layers": 10**9},
        {"n_heads": 10**9, "d_head": 1},
        {"n_heads": [1] * 10_000, "d_head": 1},
        {"n_ctx": 10**9},
        {"d_head": 10**9},
        {"d_value": 10**9},
        {"feed_forward": "relu", "d_mlp": 10**9},
        {"attention": "strided", "stride": 10**9, "attention_window": 1},
        {"attention": "local", "attention_window": 10**9},
        {"attention": "top_k", "top_k": 10**9},
        {"d_model": 65536, "n_layers": 64},  # each is allowed, but not both
    ],
    "training": [
        {"tokens": 10**18},
        {"batch_size": 10**9},
        {"warmup_steps": 10**18},
        {"checkpoints": 10**9},
        {"threads": 10**9},
        {"seed": 2**40},
        {"learning_rate": math.inf},
        {"gate_penalty": math.nan},
    ],
    "tokenizer": [{"vocabulary": 10**9}, {"sample_bytes": 10**400}, {"sample_bytes": 0}],
    "corpus": [
        {"document_bytes": 10**18},
        {"max_bytes": 10**18},
        {"max_expansion": math.inf},
        {"text_field": "x" * 999},
    ],
    "analysis": [
        {"stages": ["behaviour"] * 1000},
        {"behaviour": {"random_period_sequences": 10**9}},
        {"behaviour": {"passage_tokens": 10**6}},
        {"activation_circuits": {"bigram_tokens": 10**18}},
        {"importance": {"resamples": 10**9}},
        {"pruning": {"gate_lambdas": [0.1] * 1000}},
        {"pruning": {"retrain_rate": math.inf}},
        {"probes": {"max_steps": 10**9}},
        {"redundancy": {"max_pairs": 10**9}},
        {"feed_forward": {"windows": 10**9}},
    ],
    "costs": [
        {"n_ctx": [10**9]},
        {"d_model": list(range(1, 1000))},
        {"n_heads": [10**6], "base_d_model": 10**6},
        {"repeats": 10**9},
    ],
    "resources": [{"jobs": 10**9}, {"cpus": math.nan}],
    "max_models": [10**9, 0],
    "question": ["x" * 501],
    "name": ["x" * 65, "../x", "x\n", ""],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, absurd in ABSURD.items() for value in absurd])
def test_absurd_sizes_are_refused(field, value):
    assert len(refused(**{field: value})) < 700


def test_a_study_may_name_every_choice_there_is():
    importance = {"replacements": ["zero", "mean", "position_mean", "resample"], "scopes": ["full", "frozen_patterns"]}
    pruning = {
        "methods": get_args(Method),
        "iterative_methods": get_args(IterativeMethod),
        "keep": ["within 1 %", "within 5 %", "half"],
    }
    analysis = {"stages": list(ANALYSES), "importance": importance, "pruning": pruning}
    study = parse_study("my.toml", {"name": "mine", "analysis": analysis})
    assert study.analysis == parse_study("my.toml", {"name": "mine"}).analysis  # all are the default


def whole_numbers(config: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in config.model_fields.items():
        kinds = {field.annotation, *get_args(field.annotation)}
        if int in kinds:
            yield f"{config.__name__}.{name}", field
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, BaseModel) and kind not in (ModelSection, TrainingSection):
                yield from whole_numbers(kind)


@pytest.mark.parametrize("config", [Study, Architecture, TrainingConfig])
def test_every_whole_number_has_an_upper_bound(config):
    found = dict(whole_numbers(config))
    assert found
    assert not [name for name, field in found.items() if not {Le, Lt} & set(map(type, field.metadata))]


def test_a_study_measures_costs_where_it_names_sizes():
    assert not parse_study("s", {"name": "s", "costs": {"repeats": 3}}).measures_costs
    for axis in ("n_ctx", "d_model", "n_heads"):
        assert parse_study("s", {"name": "s", "costs": {axis: [256]}}).measures_costs


def test_missing_name():
    with pytest.raises(UserError, match="name is missing"):
        parse_study("s", {})


def test_study_files_are_found_or_refused(tmp_path):
    broken = tmp_path / "broken.toml"
    broken.write_text("name = ")
    with pytest.raises(UserError, match=r"broken\.toml is not valid TOML"):
        read_study(find_study(str(broken)))
    broken.write_bytes(b"name = '\xff'")
    with pytest.raises(UserError, match="is not valid TOML"):
        find_study(str(broken))


def test_a_study_file_may_have_a_byte_order_mark(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text('name = "s"\r\n', encoding="utf-8-sig")
    assert find_study(str(path)).content() == {"name": "s"}


@pytest.mark.parametrize(
    ("content", "got"),
    [('name = "s"'.encode("utf-16"), "UTF-16"), (b"%PDF-1.7\n", "a PDF"), (b"\x1f\x8b\x08", "compressed")],
)
def test_a_file_that_is_no_study_is_named(tmp_path, content, got):
    path = tmp_path / "s.toml"
    path.write_bytes(content)
    with pytest.raises(UserError, match=rf"must be TOML in UTF-8, got {got}.* in s\.toml\. \w+"):
        find_study(str(path))
