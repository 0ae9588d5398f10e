"""Interventions in training: exact in what they do, and the same bytes as without them until they begin."""

import numpy as np
import pytest
import torch
from test_training import PLAIN, SHORT, SMALL, train, weights
from tiny import tiny_tokens
from torch.nn import functional as F

from headstream.models.nodes import Head
from headstream.tasks.study.training_config import TrainingConfig
from headstream.tasks.study.training_interventions import InterventionConfig
from headstream.tasks.text.repeated_text import repeat_shares
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training.checkpoints import checkpoint_steps, is_intervened, load_model
from headstream.tasks.training.loop import TrainingRun
from headstream.tasks.training.predicted_by_induction import predicted_by_induction

PER_STEP = SHORT.batch_size * SMALL.n_ctx
HALF = 60 * PER_STEP
KINDS = {
    "silence": {"heads": ["L0H1"]},
    "clamp": {"heads": ["L1H0"], "pattern": "copies"},
    "cut": {"edges": ["L0 -> L1.K"]},
    "freeze": {"heads": ["L1H1"]},
    "unlearn": {"which": "beyond_bigrams"},
}


def config(*interventions: dict, **changed) -> TrainingConfig:
    given = [InterventionConfig.model_validate(own) for own in interventions]
    return SHORT.model_copy(update={"interventions": tuple(given), "tokens": 2 * HALF, **changed})


def run_of(folder, *interventions, architecture=SMALL, numerics=PLAIN) -> TrainingRun:
    return TrainingRun(architecture, config(*interventions), numerics, Tokens.open(tiny_tokens()), folder)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    train(folder, config=config())
    return weights(folder)


@pytest.mark.parametrize("kind", KINDS)
def test_until_it_begins_all_bytes_are_those_without_it_and_then_they_differ(kind, base, tmp_path):
    train(tmp_path, config=config({"kind": kind, **KINDS[kind], "from": HALF}))
    steps = sorted(base)
    before = [name for name in steps if int(name[:7]) <= 60]
    found = weights(tmp_path)
    assert {name: found[name] for name in before} == {name: base[name] for name in before}
    assert len(before) >= 3
    assert found[steps[-1]] != base[steps[-1]]


@pytest.mark.parametrize("kind", KINDS)
def test_interrupted_and_resumed_it_ends_with_the_same_bytes(kind, tmp_path):
    own = config({"kind": kind, **KINDS[kind], "from": HALF // 2, "until": HALF + PER_STEP})
    train(tmp_path / "whole", config=own)

    def stop(progress):
        if progress.step in (50, 90) and progress.step not in stopped:
            stopped.append(progress.step)
            raise InterruptedError

    stopped: list[int] = []
    for _ in range(2):
        with pytest.raises(InterruptedError):
            train(tmp_path / "cut", config=own, save_every_seconds=0.0, on_progress=stop)
    train(tmp_path / "cut", config=own)
    assert weights(tmp_path / "cut") == weights(tmp_path / "whole")


def test_silenced_is_trained_as_with_output_weights_of_zero_that_are_held(tmp_path):
    """Every other weight takes the same steps: a head that writes nothing has a gradient nowhere."""
    silenced = run_of(tmp_path / "a", {"kind": "silence", "heads": ["L0H1"]})
    held = run_of(tmp_path / "b")
    attention = held.model.layers[0].attention
    attention.W_O.data[1] = 0
    attention.W_O.register_hook(lambda gradient: gradient * torch.tensor([1.0, 0.0])[:, None, None])
    for _ in range(8):
        silenced.take_step()
        held.take_step()
        attention.W_O.data[1] = 0
    for (name, found), expected in zip(silenced.model.named_parameters(), held.model.parameters(), strict=True):
        if name == "layers.0.attention.W_O":
            found, expected = found[0], expected[0]
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6, msg=name)


def test_frozen_weights_stay_as_they_are_and_the_others_learn(tmp_path):
    run = run_of(tmp_path, {"kind": "freeze", "heads": ["L1H1"], "from": 3 * PER_STEP, "until": 8 * PER_STEP})
    seen = []
    for _ in range(10):
        attention = run.model.layers[1].attention
        parts = ("W_Q", "W_K", "W_V", "W_O", "position_bias")
        seen.append([torch.stack([getattr(attention, p)[h].sum() for p in parts]).detach().clone() for h in (0, 1)])
        run.take_step()
    other, frozen = (torch.stack([own[h] for own in seen]) for h in (0, 1))
    assert (frozen[3:9] == frozen[3]).all()
    assert (frozen[:4].diff(dim=0) != 0).all()
    assert (frozen[9] != frozen[8]).all()
    assert (other.diff(dim=0) != 0).all()


@pytest.mark.parametrize("which", ["token", "pair", "beyond_bigrams"])
def test_unlearned_tokens_have_no_loss(which, tmp_path):
    """The loss by hand: the mean over all tokens but those that followed the last copy in the sequence."""
    run = run_of(tmp_path, {"kind": "unlearn", "which": which})
    tokens = Tokens.open(tiny_tokens())
    windows = run.batches.batch(0)
    logits = run.model(torch.from_numpy(windows[:, :-1]))
    losses = F.cross_entropy(logits.flatten(0, 1), torch.from_numpy(windows[:, 1:]).flatten(), reduction="none")
    kept = [not is_predicted(row.tolist(), place, which, tokens) for row in windows for place in range(len(row) - 1)]
    loss, _ = run.take_step()
    assert 0 < sum(kept) < len(kept)
    assert loss.item() == pytest.approx(losses[kept].mean().item(), rel=1e-6)


def is_predicted(row: list[int], place: int, which: str, tokens: Tokens) -> bool:
    """Word by word: whether what follows is what followed the last copy."""
    if tokens.bos in (row[place], row[place + 1]):
        return False
    length = 1 if which == "token" else 2
    if length == 2 and (place == 0 or row[place - 1] == tokens.bos):
        return False
    current = row[place - length + 1 : place + 1]
    for earlier in range(place - 1, length - 2, -1):
        if row[earlier - length + 1 : earlier + 1] == current:
            common = which == "beyond_bigrams" and common_successor(tokens)[row[place]] == row[place + 1]
            return row[earlier + 1] == row[place + 1] and not common
    return False


def common_successor(tokens: Tokens) -> list[int]:
    stream = tokens.train.read(0, len(tokens.train)).astype(np.int64)
    counts = np.zeros((tokens.vocabulary, tokens.vocabulary), np.int64)
    np.add.at(counts, (stream[:-1], stream[1:]), 1)
    return counts.argmax(1).tolist()


def test_tokens_that_are_unlearned_are_those_whose_share_the_corpus_table_has():
    """Of one sequence without BOS, as long as a context that the table has: position by position the same share."""
    tokens = Tokens.open(tiny_tokens())
    shares = {row["context"]: row for row in repeat_shares(tokens)}
    stream = torch.from_numpy(tokens.validation.read(0, len(tokens.validation)).astype(np.int64))
    context = 16
    windows = stream.unfold(0, context + 1, 1)
    for which, column in (("token", "token_share"), ("pair", "pair_share")):
        found = predicted_by_induction(windows, -1, which)[:, -1].float().mean().item()
        assert found == pytest.approx(shares[context][column], abs=0.03)


def test_a_checkpoint_is_measured_as_it_was_trained_and_set_free_if_asked(tmp_path):
    acts = {"from": 20 * PER_STEP, "until": HALF}
    silence = {"kind": "silence", "heads": ["L0H1"], **acts}
    train(tmp_path, config=config(silence, {"kind": "clamp", "heads": ["L1H0"], "pattern": "self", **acts}))
    steps = checkpoint_steps(tmp_path)
    acting = [step for step in steps if 20 <= step < 60]
    assert [step for step in steps if is_intervened(tmp_path, step)] == acting
    assert 0 < len(acting) < len(steps)
    model = load_model(tmp_path, acting[0])
    assert model.interventions
    assert model.interventions.clamped == {Head(1, 0): "self"}
    assert (model.layers[0].attention.W_O[1] == 0).all()
    freed = load_model(tmp_path, acting[0], set_free=True)
    assert freed.interventions is None
    assert (freed.layers[0].attention.W_O[1] != 0).any()
    last = load_model(tmp_path, steps[-1])
    assert last.interventions is None
    assert (last.layers[0].attention.W_O[1] != 0).any()
