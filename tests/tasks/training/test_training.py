import hashlib
import multiprocessing
import random
import time
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from tiny import tiny_tokens
from torch.utils._python_dispatch import TorchDispatchMode

from headstream.models.architecture import Architecture
from headstream.models.transformer import Transformer
from headstream.tasks.errors import WorkError
from headstream.tasks.results.tables import table_schema
from headstream.tasks.study.training_config import TrainingConfig
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.text.training_batches import Batches
from headstream.tasks.training import loop
from headstream.tasks.training.checkpoints import checkpoint_steps, load_model
from headstream.tasks.training.loop import TrainingRun, next_token_loss
from headstream.tasks.training.model_training import train_model
from headstream.tasks.training.numerics import Numerics, resolve_numerics, training_flops
from headstream.tasks.training.parameter_groups import build_optimizers
from headstream.tasks.training.training_steps import kept_steps

aten = torch.ops.aten
SMALL = Architecture(n_layers=2, n_heads=2, d_model=24, n_ctx=16)
SHORT = TrainingConfig(tokens=16 * 8 * 120, batch_size=8, warmup_steps=10, checkpoints=5, repeats_fraction=0.25)
PLAIN = Numerics("cpu", "float32", 1, compiled=False)


def train(folder: Path, architecture=SMALL, config=SHORT, numerics=PLAIN, save_every_seconds=10.0, **options):
    folder.mkdir(exist_ok=True)
    with mock.patch("headstream.tasks.training.loop.SAVE_EVERY_SECONDS", save_every_seconds):
        return train_model(
            architecture, config, numerics, tiny_tokens(), folder, cell_id="2L1H-s0-c", corpus_id="c", **options
        )


def weights(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in (folder / "checkpoints").glob("*")}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    return folder, train(folder)


def test_training_lowers_the_loss_and_keeps_checkpoints(trained):
    folder, facts = trained
    assert checkpoint_steps(folder) == kept_steps(120, 5)
    assert facts["steps"] == 120
    tokens = Tokens.open(tiny_tokens())
    windows = torch.from_numpy(np.insert(tokens.validation.windows(np.arange(0, 480, 16), 16), 0, tokens.bos, axis=1))
    first, last = (float(next_token_loss(load_model(folder, s), windows, "float32", None, [])) for s in (0, 120))
    assert first == pytest.approx(np.log(tokens.vocabulary), abs=0.1)
    assert last < first - 1.0


def test_tables_of_a_trained_model(trained):
    folder, facts = trained
    row = pq.read_table(folder / "models.parquet").to_pylist()[0]
    assert row["name"] == "2L2H"
    assert row["d_head"] == 12
    assert row["parameters"] == sum(p.numel() for p in Transformer(SMALL, facts["vocabulary"]).parameters())
    log = pq.read_table(folder / "training.parquet").to_pandas()
    assert log.step.tolist() == list(range(10, 121, 10))
    assert (log.tokens == log.step * SHORT.batch_size * SMALL.n_ctx).all()
    assert log.seconds.is_monotonic_increasing
    assert log.learning_rate.iloc[-1] < log.learning_rate.max()


def test_every_field_of_a_model_is_a_column():
    columns = set(table_schema("models").names)
    fields = {*Architecture.model_fields, *TrainingConfig.model_fields}
    assert fields <= columns


def test_the_same_twice_and_another_seed_differs(trained, tmp_path):
    train(tmp_path / "again")
    assert weights(tmp_path / "again") == weights(trained[0])
    train(tmp_path / "other", config=SHORT.model_copy(update={"seed": 1}))
    assert weights(tmp_path / "other") != weights(trained[0])


def _train_slowly(folder: Path) -> None:
    train(folder, save_every_seconds=0.0, on_progress=lambda progress: time.sleep(0.1))  # 12 times: it outlasts a kill


def test_killed_at_random_steps_it_ends_with_the_same_bytes(trained, tmp_path):
    """kill -9 again and again; each run goes on from the last saved state."""
    tiny_tokens()
    context, rng = multiprocessing.get_context("fork"), random.Random(0)
    folder = tmp_path / "killed"
    kills = 0
    while kills < 6:
        process = context.Process(target=_train_slowly, args=(folder,))
        process.start()
        process.join(rng.uniform(0.05, 0.5))
        if process.exitcode is None:
            process.kill()
            kills += 1
        process.join()
        if process.exitcode == 0:
            break
    assert kills >= 2
    train(folder)
    assert weights(folder) == weights(trained[0])


def stop_at_60(progress):
    if progress.step == 60:
        raise InterruptedError


def test_a_resumed_run_does_not_start_again(tmp_path):
    with pytest.raises(InterruptedError):
        train(tmp_path, on_progress=stop_at_60, save_every_seconds=0.0)
    seen = []
    train(tmp_path, on_progress=lambda progress: seen.append(progress.step))
    assert seen[:2] == [50, 60]  # the state saved before step 60 was reported is that of step 50, and it says so
    assert seen[-1] == 120


@pytest.mark.parametrize("damage", ["truncated", "emptied", "a bit flipped", "another step"])
def test_a_damaged_state_is_not_resumed_from(trained, tmp_path, damage, caplog):
    with pytest.raises(InterruptedError):
        train(tmp_path, on_progress=stop_at_60, save_every_seconds=0.0)
    state = tmp_path / ".resume" / "state.safetensors"
    content = bytearray(state.read_bytes())
    if damage == "a bit flipped":
        content[-1000] ^= 1
    damaged = {"truncated": content[:-5], "emptied": b"", "another step": content.replace(b'"50"', b'"40"')}
    state.write_bytes(damaged.get(damage, content))
    train(tmp_path)
    assert "so training begins again" in caplog.text
    assert weights(tmp_path) == weights(trained[0])


def test_a_diverging_loss_stops_with_what_to_try(tmp_path):
    config = SHORT.model_copy(update={"muon_learning_rate": 30.0, "learning_rate": 30.0})
    with pytest.raises(WorkError, match=r"at step \d+ of 120; last good loss: .* Try a lower muon_learning_rate"):
        train(tmp_path, config=config)


@pytest.mark.parametrize(("rate", "n_steps"), [(50.0, 60), (1e8, 1)])
def test_a_training_shorter_than_its_warm_up_is_checked_at_its_end(tmp_path, rate, n_steps):
    """The last step's loss is of the weights before it: a single step of 1e8 has a good loss, and leaves 1e34."""
    config = SHORT.model_copy(
        update={"tokens": 16 * 8 * n_steps, "warmup_steps": n_steps, "optimizer": "adamw", "learning_rate": rate}
    )
    with pytest.raises(WorkError, match=rf"at step {n_steps} of {n_steps}; last good loss: ") as caught:
        train(tmp_path, config=config)
    assert "Try a lower learning_rate (now" in str(caught.value)  # and not that of Muon, which trains nothing


def test_a_loss_that_is_worse_than_guessing_is_not_called_good(tmp_path):
    config = SHORT.model_copy(update={"warmup_steps": 60, "muon_learning_rate": 30.0, "learning_rate": 30.0})
    with pytest.raises(WorkError) as caught:
        train(tmp_path, config=config)
    good = str(caught.value).split("last good loss: ")[1].split(" nats")[0]
    assert good.startswith("none") or float(good) < np.log(270) + 1


def test_tokens_are_those_that_were_read(tmp_path):
    train(tmp_path, config=SHORT.model_copy(update={"tokens": 1000}))  # 7.8 steps
    (row,) = pq.read_table(tmp_path / "models.parquet").to_pylist()
    assert row["tokens"] == 8 * 8 * 16 == pq.read_table(tmp_path / "training.parquet")["tokens"][-1].as_py()


def test_nan_stops_at_its_step(tmp_path, monkeypatch):
    real = loop.next_token_loss
    calls = []

    def poisoned(*args):
        calls.append(1)
        return real(*args) * (float("nan") if len(calls) == 34 else 1.0)

    monkeypatch.setattr(loop, "next_token_loss", poisoned)
    with pytest.raises(WorkError, match=r"became NaN at step 34 of 120; last good loss: .* nats at step 30"):
        train(tmp_path)


@pytest.mark.parametrize(
    "fields",
    [
        {"n_layers": 0},
        {"positions": "rotary", "normalization": "layernorm", "feed_forward": "gelu", "biases": True},
        {"n_heads": (0, 3), "d_head": 8, "tied_embeddings": True, "qk_normalization": True},
        {
            **{
                "attention": "local",
                "attention_window": 5,
                "windowed_layers": (1,),
                "score_scale": 0.5,
                "logit_cap": 9.0,
            },
            **{"positions": "rotary", "normalization": "rmsnorm", "normalization_place": "both", "norm_offset": True},
            **{"qk_normalization": True, "qk_normalization_over": "layer", "score_cap": 9.0, "embedding_scale": 2.0},
        },
    ],
)
def test_other_architectures_train(tmp_path, fields):
    architecture = Architecture(**{"d_model": 24, "n_ctx": 16, "n_heads": 2, **fields})
    config = SHORT.model_copy(update={"tokens": 16 * 8 * 30, "learning_rate": 3e-3})
    facts = train(tmp_path, architecture, config)
    assert facts["final_train_loss_nats"] < np.log(270)


def test_bfloat16_agrees_with_float32(tmp_path, trained):
    train(tmp_path, numerics=Numerics("cpu", "bfloat16", 1, compiled=False))
    losses = [
        pq.read_table(folder / "training.parquet").column("loss_nats")[-1].as_py() for folder in (tmp_path, trained[0])
    ]
    assert losses[0] == pytest.approx(losses[1], abs=0.05)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_matrices_are_multiplied_in_the_precision_asked_for(tmp_path, precision):
    """All of them: processors that don't multiply bfloat16 in hardware take many times as long for it."""
    architecture = Architecture(d_model=24, n_ctx=16, n_heads=2, feed_forward="gelu")
    tokens, numerics = Tokens.open(tiny_tokens()), Numerics("cpu", precision, 1, compiled=False)
    run = TrainingRun(architecture, SHORT, numerics, tokens, tmp_path)
    with ProductDtypes() as products:
        run.take_step()
    assert products.dtypes == {getattr(torch, precision)}


class ProductDtypes(TorchDispatchMode):
    """Notes what matrix products multiply."""

    def __init__(self):
        super().__init__()
        self.dtypes = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket in {aten.mm, aten.bmm, aten.addmm, aten.baddbmm}:
            self.dtypes.add(args[-1].dtype)
        return func(*args, **kwargs or {})


def test_every_parameter_is_optimised_once():
    model = Transformer(Architecture(normalization="layernorm", biases=True, feed_forward="relu"), 31)
    for optimizer in ("muon", "adamw"):
        optimizers = build_optimizers(model, TrainingConfig(optimizer=optimizer), "float32")
        params = [p for o in optimizers for g in o.param_groups for p in g["params"]]
        assert len(params) == len({id(p) for p in params}) == len(list(model.parameters()))


def test_batches_are_a_pure_function_of_seed_and_step():
    tokens = Tokens.open(tiny_tokens())

    def batches(seed, fraction=0.0):
        return Batches(tokens, n_ctx=16, batch_size=8, seed=seed, repeats_fraction=fraction)

    one, two = batches(0, 0.5), batches(0, 0.5)
    for step in (5, 2, 700, 5):
        assert (one.batch(step) == two.batch(step)).all()
    assert (one.batch(5)[:, 0] == tokens.bos).all()
    assert (one.batch(5) != batches(1, 0.5).batch(5)).any()


def test_an_epoch_uses_every_window_once():
    tokens = Tokens.open(tiny_tokens())
    batches = Batches(tokens, n_ctx=16, batch_size=1, seed=3)
    stream = tokens.train.read(0, len(tokens.train))
    starts = batches._epoch(0)
    assert len(set(starts.tolist())) == batches.n_windows
    assert (np.diff(np.sort(starts)) == 16).all()
    assert (batches.batch(4)[0, 1:] == stream[starts[4] : starts[4] + 16]).all()


def test_repeats_have_random_periods_and_no_bos():
    tokens = Tokens.open(tiny_tokens())
    batches = Batches(tokens, n_ctx=64, batch_size=400, seed=0, repeats_fraction=1.0)
    rows = batches.batch(0)[:, 1:]
    periods = {next(p for p in range(1, 64) if (row[p:] == row[:-p]).all()) for row in rows}
    assert periods <= set(range(8, 33))
    assert len(periods) > 20
    assert (rows != tokens.bos).all()


def test_numerics(monkeypatch):
    assert training_flops(Architecture(n_layers=0, d_model=8), 11, 5) == 6 * 8 * 11 * 5
    assert (
        resolve_numerics(SMALL, TrainingConfig(device="cuda"), 300)[0].device == "cuda"
    )  # another machine may have it
    small, why = resolve_numerics(SMALL, SHORT, 300)
    assert not small.compiled
    assert "too few" in why
    large, why = resolve_numerics(Architecture(), TrainingConfig(), 512)
    assert large.compiled
    monkeypatch.setenv("CXX", "no-such-compiler")
    without, why = resolve_numerics(Architecture(), TrainingConfig(), 512)
    assert not without.compiled
    assert "no C++ compiler" in why


PRUNED = SHORT.model_copy(update={"prune_to": 0.5})


def test_training_that_prunes_leaves_heads_that_write_nothing(tmp_path):
    facts = train(tmp_path / "whole", config=PRUNED)
    left = pq.read_table(tmp_path / "whole" / "training.parquet")["heads_left"].to_pylist()
    assert (left[0], left[-1]) == (4, 2)
    assert sum(facts["heads_left"]) == 2
    model = load_model(tmp_path / "whole", 120)
    writes = [int((layer.attention.W_O != 0).any(2).any(1).sum()) for layer in model.layers]
    assert writes == facts["heads_left"]


def test_pruning_goes_on_where_an_interrupted_run_stopped(tmp_path):
    train(tmp_path / "whole", config=PRUNED)

    def stop_at_70(progress):
        if progress.step == 70:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "halves", config=PRUNED, on_progress=stop_at_70, save_every_seconds=0)
    train(tmp_path / "halves", config=PRUNED)
    assert weights(tmp_path / "halves") == weights(tmp_path / "whole")


def test_pruning_needs_heads_to_prune(tmp_path):
    facts = train(tmp_path, architecture=SMALL.model_copy(update={"n_layers": 0}), config=PRUNED)
    assert facts["heads_left"] == []
