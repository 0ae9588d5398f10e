"""Which models [[models]] sections stand for: checkpoints, their order, tokenizer, BOS and context."""

import hashlib
from pathlib import Path

import pytest
import torch
from written_families import write_family
from written_models import (
    D_VOCAB,
    N_CTX,
    gpt2_architecture,
    gpt2_config,
    gpt2_tensors,
    nanogpt_checkpoint,
    random_weights,
    write_folder,
    write_words,
)

from headstream.models.bos import NO_BOS
from headstream.tasks.errors import UserError
from headstream.tasks.importing.checkpoint_paths import steps_of
from headstream.tasks.importing.imported_cell import read_imported
from headstream.tasks.importing.model_import import shortened
from headstream.tasks.importing.open_foreign import open_foreign
from headstream.tasks.importing.revisions import step_in, tokens_in
from headstream.tasks.studies.known_studies import find_study
from headstream.tasks.study.imported_model_config import ImportedModelConfig
from headstream.tasks.study.schema import parse_study, read_study

ARCHITECTURE = gpt2_architecture()


def written(folder: Path, seed=0, architecture=ARCHITECTURE, n_ids=D_VOCAB) -> Path:
    tensors = gpt2_tensors(architecture, random_weights(architecture, seed=seed))
    return write_folder(folder, gpt2_config(architecture), tensors, n_ids)


def read(**fields):
    (cell,) = read_imported([ImportedModelConfig(**{"name": "mine", **fields})])
    return cell


def test_one_folder_is_one_checkpoint(tmp_path):
    cell = read(path=str(written(tmp_path / "model")))
    assert (cell.label, cell.format, cell.d_vocab, cell.bos) == ("mine", "huggingface gpt2", D_VOCAB, NO_BOS)
    assert [(each.step, each.tokens) for each in cell.checkpoints] == [(1, None)]
    assert cell.architecture == ARCHITECTURE


def test_windows_are_those_of_the_context_that_is_measured(tmp_path):
    write_family(tmp_path / "gemma2", "gemma2")
    write_family(tmp_path / "gemma3", "gemma3_text")
    second, third = (read(path=str(tmp_path / name), n_ctx=4).architecture for name in ("gemma2", "gemma3"))
    assert (second.attention, second.windowed_layers) == ("full", None)
    assert (third.attention_window, third.windowed_layers) == (4, (0, 2))  # whose layers differ in their bases, too
    assert read(path=str(tmp_path / "gemma2"), n_ctx=7).architecture.windowed_layers == (0, 2)


def test_a_pattern_is_a_history_in_the_order_of_its_numbers(tmp_path):
    for step in (1000, 20, 300):
        written(tmp_path / f"checkpoint-{step}", seed=step)
    cell = read(path=str(tmp_path / "checkpoint-*"))
    assert [each.step for each in cell.checkpoints] == [20, 300, 1000]
    assert [each.path.name for each in cell.checkpoints] == ["checkpoint-20", "checkpoint-300", "checkpoint-1000"]


def test_steps_and_tokens_may_be_given(tmp_path):
    paths = [str(written(tmp_path / name, seed=i)) for i, name in enumerate(("first", "then", "last"))]
    assert [each.step for each in read(path=paths).checkpoints] == [1, 2, 3]
    cell = read(path=paths, steps=[0, 10, 20], tokens=[0, 640, 1280])
    assert [(each.step, each.tokens) for each in cell.checkpoints] == [(0, 0), (10, 640), (20, 1280)]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("checkpoint-1000", 1000), ("step20.pt", 20), ("run2_step300.pt", 300), ("v1", 1), ("final", None),
        ("step1000-tokens4B", 1000), ("stage1-step50000-tokens210B", 50_000), ("stage2-ingredient3-step7-tokens2B", 7),
        ("global_step95000", 95_000), ("iter_0001000", 1000), ("epoch=3-step=800.ckpt", 800), ("step=800-epoch=3", 800),
        ("step_40", 40), ("STEP-40", 40), ("ckpt_356", 356),
    ],
)  # fmt: skip
def test_steps_in_names(name, number):
    assert step_in(Path("runs") / name) == number


def test_the_step_may_be_the_folders():
    assert step_in(Path("runs/700/model.pt")) == 700
    assert step_in(Path("runs/step700-tokens4B/model.pt")) == 700


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("step1000-tokens4B", 4_000_000_000), ("stage1-step10-tokens21M", 21_000_000), ("step5_tokens_2t", 2 * 10**12),
        ("step5-tokens700", 700), ("step5", None), ("tokens", None), ("step1-tokens4Bx", None),
    ],
)  # fmt: skip
def test_tokens_in_names(name, number):
    assert tokens_in(Path("runs") / name) == number


def test_a_folder_of_revisions_is_a_history(tmp_path):
    for step, tokens in ((1000, 4), (20, 1), (300, 2)):
        written(tmp_path / f"step{step}-tokens{tokens}B", seed=step)
    (tmp_path / "notes").mkdir()
    (tmp_path / "README.md").write_text("mine")
    cell = read(path=str(tmp_path))
    assert [(each.step, each.tokens) for each in cell.checkpoints] == [(20, 10**9), (300, 2 * 10**9), (1000, 4 * 10**9)]
    assert cell.notes == ()
    written(tmp_path / "main", seed=1000)
    cell = read(path=str(tmp_path))
    assert [each.step for each in cell.checkpoints] == [20, 300, 1000]
    assert cell.notes == ("left out, since its step isn't known: main",)


def cache(folder: Path, branches: dict[str, int]) -> Path:
    """A model in Hugging Face's cache: branches by name, each with the seed of its weights."""
    folder = folder / "models--EleutherAI--pythia-70m"
    (folder / "refs").mkdir(parents=True)
    (folder / "snapshots").mkdir()
    for name, seed in branches.items():
        commit = hashlib.sha1(str(seed).encode()).hexdigest()
        (folder / "refs" / name).write_text(commit)
        written(folder / "snapshots" / commit, seed=seed)
    return folder


@pytest.mark.parametrize("within", ["", "snapshots", "snapshots/*"])
def test_branches_in_a_cache_are_a_history(within, tmp_path):
    folder = cache(tmp_path, {"main": 5, "step1000": 3, "step0": 1, "step64": 2, "step143000": 5})
    cell = read(path=str(folder / within))
    assert [each.step for each in cell.checkpoints] == [0, 64, 1000, 143_000]
    assert cell.notes == ()


def test_a_snapshot_of_no_branch_with_a_step_is_left_out_and_told(tmp_path):
    folder = cache(tmp_path, {"main": 5, "step1000": 3, "step0": 1})
    written(folder / "snapshots" / "0123abc4", seed=9)
    cell = read(path=str(folder))
    assert [each.step for each in cell.checkpoints] == [0, 1000]
    told = "left out, since its step isn't known: "
    assert sorted(cell.notes) == [f"{told}0123abc4", f"{told}main"]


def test_a_cache_without_steps_is_its_main_branch(tmp_path):
    (only,) = read(path=str(cache(tmp_path / "one", {"main": 5}))).checkpoints
    (main,) = read(path=str(cache(tmp_path / "two", {"main": 5, "v1.0": 3}))).checkpoints
    assert only.content == main.content
    with pytest.raises(UserError, match=r"two/models--EleutherAI--pythia-70m holds 2 models. Give one of them"):
        open_foreign(main.path.parent.parent)


@pytest.mark.parametrize("path", ["a" * 4000, "a/" * 1900])
def test_a_path_that_is_too_long_is_refused(path):
    with pytest.raises(UserError, match="Correct the path"):
        read(path=path)


def test_the_tokenizer_may_lie_beside_one_checkpoint(tmp_path):
    for step in (1, 2, 3):
        written(tmp_path / f"step{step}", seed=step, n_ids=D_VOCAB if step == 2 else None)
    assert read(path=str(tmp_path)).tokenizer.entries == D_VOCAB


def test_a_folder_of_files_is_no_history_unless_it_is_a_pattern(tmp_path):
    """Weights side by side may be shards of one model."""
    for step in (30, 4):
        a = gpt2_architecture(d_mlp=60)
        torch.save(
            nanogpt_checkpoint(a, random_weights(a, seed=step)) | {"iter_num": step}, tmp_path / f"step{step}.pt"
        )
    write_words(tmp_path / "tokenizer.json", D_VOCAB)
    assert [each.step for each in read(path=str(tmp_path / "*.pt")).checkpoints] == [4, 30]
    with pytest.raises(UserError, match="holds 2 files of weights"):
        read(path=str(tmp_path))


def test_a_file_that_knows_its_step_is_believed():
    config = ImportedModelConfig(name="mine", path=("a-1.pt", "b-2.pt"))
    assert steps_of(config, [Path("a-1.pt"), Path("b-2.pt")], [100, 200]) == (100, 200)
    assert steps_of(config, [Path("a-1.pt"), Path("b-2.pt")], [100, None]) == (1, 2)


def test_the_context_is_cut_and_learned_positions_with_it(tmp_path):
    folder = written(tmp_path / "model")
    cell = read(path=str(folder), n_ctx=7)
    assert cell.architecture.n_ctx == 7
    weights = random_weights(ARCHITECTURE)
    cut = shortened(weights, cell.architecture)
    torch.testing.assert_close(cut["W_pos"], weights["W_pos"][:7])
    assert {name for name in weights if cut[name].shape != weights[name].shape} == {"W_pos"}


def test_bos_may_be_given(tmp_path):
    folder = str(written(tmp_path / "model"))
    assert read(path=folder, bos="w3").bos == 3
    assert read(path=folder, bos="").bos == NO_BOS


def test_where_the_files_lie_decides_nothing(tmp_path):
    one, other = (read(path=str(written(tmp_path / name))) for name in ("one", "other"))
    changed = read(path=str(written(tmp_path / "changed", seed=1)))
    assert one.imported_as == other.imported_as != changed.imported_as


def spoiled(tmp_path, case):
    good = str(written(tmp_path / "good"))
    match case:
        case "nothing":
            return {"path": str(tmp_path / "step*")}
        case "same bytes":
            return {"path": [good, str(written(tmp_path / "again"))]}
        case "other architecture":
            return {"path": [good, str(written(tmp_path / "other", architecture=gpt2_architecture(n_layers=1)))]}
        case "other tokenizer":
            return {"path": [good, str(written(tmp_path / "other", seed=1, n_ids=D_VOCAB - 1))]}
        case "many copies":
            for step in range(9):
                written(tmp_path / "history" / f"step{step}", seed=step % 2)
            return {"path": str(tmp_path / "history")}
        case "two stages":
            for stage in (1, 2):
                written(tmp_path / "history" / f"stage{stage}-step{70 - stage}-tokens2B", seed=stage)
            return {"path": str(tmp_path / "history")}
        case "two ingredients":
            for i in (1, 2):
                written(tmp_path / f"stage2-ingredient{i}-step{i}000-tokens3B", seed=i)
            return {"path": str(tmp_path / "stage2-*")}
        case "one step twice":
            for name in ("step50", "step50-again"):
                written(tmp_path / "history" / name, seed=len(name))
            return {"path": str(tmp_path / "history")}
        case "models of no step":
            for name in ("first", "last"):
                written(tmp_path / "history" / name)
            return {"path": str(tmp_path / "history")}
        case "runs, not steps":
            for name in ("run1", "run2"):
                written(tmp_path / "runs" / name)
            return {"path": str(tmp_path / "runs")}
        case "too few steps":
            return {"path": [good, str(written(tmp_path / "other", seed=1))], "steps": [1]}
        case "steps out of order":
            return {"path": [good, str(written(tmp_path / "other", seed=1))], "steps": [5, 2]}
        case "names out of order":
            return {"path": [str(written(tmp_path / "s20", seed=2)), str(written(tmp_path / "s3", seed=1))]}
        case "too many tokens":
            return {"path": good, "tokens": [1, 2]}
        case "too long":
            return {"path": good, "n_ctx": N_CTX + 1}
        case "no tokenizer":
            return {"path": str(written(tmp_path / "bare", n_ids=None))}
        case "strange BOS":
            return {"path": good, "bos": "<s>"}
        case "no package":
            return {"path": "*.gguf", "package": "no-such-package-of-models"}
        case "nothing in the package":
            return {"path": "*.gguf", "package": "torch"}


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("nothing", "nothing matches the path"),
        ("same bytes", "the same bytes: .*good and .*again"),
        ("many copies", "5 checkpoints hold the same bytes: .*step0, .*step2, .*step4, .*step6 and .*step8"),
        (
            "two stages",
            "stage2-step68-tokens2B and .*stage1-step69-tokens2B are of different trainings, by their names",
        ),
        ("two ingredients", "ingredient1-step1000-tokens3B and .*ingredient2-step2000-tokens3B are of different"),
        ("one step twice", "step50 and .*step50-again are both of step 50"),
        ("models of no step", "holds 2 models. Give one of them, such as .*first; in a study, all if"),
        ("runs, not steps", "holds 2 models"),
        ("other architecture", "other has a different architecture from .*good"),
        ("other tokenizer", "other has a different tokenizer"),
        ("too few steps", "one number for each of 2 checkpoints, got 1"),
        ("steps out of order", "order of their steps: .*good is of step 5, and .*other after it of step 2"),
        ("names out of order", "order of their steps: .*s20 is of step 20, and .*s3 after it of step 3"),
        ("too many tokens", "tokens must have one number for each of 1 checkpoints, got 2"),
        ("too long", f"at most what the model can read, {N_CTX}, got {N_CTX + 1}"),
        ("no tokenizer", "the model needs its own"),
        ("strange BOS", "bos must be a token of the model's tokenizer, got '<s>'"),
        ("no package", "pip install --no-deps no-such-package-of-models"),
        ("nothing in the package", "must name one file of the package torch"),
    ],
)
def test_mistakes_are_one_line_that_names_the_section(tmp_path, case, says):
    with pytest.raises(UserError, match=says) as error:
        read(**spoiled(tmp_path, case))
    assert str(error.value).startswith("[[models]] mine")
    assert "\n" not in str(error.value)


def test_a_study_of_models_from_elsewhere_trains_none_unless_asked():
    models = {"name": "s", "models": [{"name": "mine", "path": "folder"}]}
    assert parse_study("s.toml", models).cells == ()
    assert parse_study("s.toml", models).n_models == 1
    assert len(parse_study("s.toml", models | {"grid": {"seed": [0, 1]}}).cells) == 2
    assert len(parse_study("s.toml", models | {"model": {"n_layers": 1}}).cells) == 1


def test_relative_paths_start_at_the_study_file(tmp_path):
    (tmp_path / "mine.toml").write_text(
        """
        name = "mine"
        models = [
            { name = "a", path = "runs/a", tokenizer = "tokenizer.json" },
            { name = "b", path = ["runs/1", "/runs/2", "~/runs/3"] },
            { name = "c", path = "*.gguf", package = "some-package" },
        ]
        """
    )
    a, b, c = read_study(find_study(str(tmp_path / "mine.toml"))).models
    assert (a.path, a.tokenizer) == (str(tmp_path / "runs" / "a"), str(tmp_path / "tokenizer.json"))
    assert b.path == (str(tmp_path / "runs" / "1"), "/runs/2", "~/runs/3")
    assert c.path == "*.gguf"


def test_two_models_of_one_name_are_refused():
    both = [{"name": "mine", "path": "a"}, {"name": "mine", "path": "b"}]
    with pytest.raises(UserError, match=r"two of .* have the name 'mine'"):
        parse_study("s.toml", {"name": "s", "models": both})
