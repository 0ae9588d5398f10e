"""Models measured and their losses read while a run writes them, and as it commits them."""

import shutil
from unittest import mock

import pytest
import torch
from planted import induction_model
from tiny import letter_tokens, tiny_tokens

from headstream.models.architecture import Architecture
from headstream.models.transformer import Transformer
from headstream.tasks.storage.artifact import Spec
from headstream.tasks.storage.store import Store
from headstream.tasks.study.training_config import TrainingConfig
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.text.windows import evaluation_text
from headstream.tasks.training.checkpoints import save_checkpoint, write_model_card
from headstream.tasks.training.model_training import train_model
from headstream.tasks.training.numerics import Numerics
from headstream.tasks.watching import checkpoint_measuring
from headstream.tasks.watching.checkpoint_measuring import BUDGET, CheckpointMeasuring
from headstream.tasks.watching.models_so_far import WatchedModel, training_losses

TRAINING = Spec("training", "v", {}, {}, {})
BEHAVIOUR = Spec("behaviour", "v", {}, {}, {})


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "store")


def put_tokens(store: Store, source) -> str:
    """Tokens in a store, by their key."""

    copy = lambda folder: shutil.copytree(source, folder, dirs_exist_ok=True) and None  # noqa: E731
    return store.build(Spec("tokens", "v", {}, {}, {}), copy).manifest.key


def watched(store: Store, source=None) -> WatchedModel:
    return WatchedModel("seed=0", TRAINING.key, put_tokens(store, source or tiny_tokens()), BEHAVIOUR.key)


def random_model(step: int = 0) -> Transformer:
    architecture = Architecture(n_layers=1, n_heads=2, d_model=10, n_ctx=16)
    model = Transformer(architecture, Tokens.open(tiny_tokens()).vocabulary)
    return model.initialize(torch.Generator().manual_seed(step))


def save(folder, *steps: int) -> None:
    for step in steps:
        save_checkpoint(folder, random_model(step), step)
    write_model_card(folder, random_model(), 128)


def measure_all(measuring: CheckpointMeasuring, model: WatchedModel) -> None:
    while measuring.measure_next([model]):
        pass


def mean_loss(model: Transformer, n_ctx: int, source) -> float:
    """Validation loss of a model in float64, a sequence at a time."""
    model, losses = model.double(), []
    for sequence in evaluation_text(Tokens.open(source), n_ctx, BUDGET.loss_windows).sequences:
        log_probabilities = model(sequence[None, :-1])[0].log_softmax(-1)
        losses.append(-log_probabilities.gather(1, sequence[1:, None]).mean())
    return torch.stack(losses).mean().item()


def test_each_checkpoint_is_measured_once_the_last_first(store, tmp_path):
    model, measuring = watched(store), CheckpointMeasuring(store, tmp_path)
    seen = []

    def train(folder):
        save(folder, 0, 3, 9)
        while measuring.measure_next([model]):
            seen.append([tokens for tokens, _ in measuring.scores(model).validation])
        save(folder, 12)
        assert measuring.measure_next([model])
        assert not measuring.measure_next([model])

    assert not measuring.measure_next([model])  # nothing yet
    assert measuring.scores(model) is None
    store.build(TRAINING, train)
    assert seen == [[9 * 128], [3 * 128, 9 * 128], [0, 3 * 128, 9 * 128]]
    assert not measuring.measure_next([model])  # what moved is what was measured
    scores = measuring.scores(model)
    assert scores.preliminary
    assert [tokens // 128 for tokens, _ in scores.validation] == [0, 3, 9, 12]
    expected = [mean_loss(random_model(step), 16, tiny_tokens()) for step in (0, 3, 9, 12)]
    assert [nats for _, nats in scores.validation] == pytest.approx(expected, abs=1e-5)


def test_a_planted_circuit_is_found(store, tmp_path):
    tokens = letter_tokens()
    planted = induction_model(Tokens.open(tokens).vocabulary, n_ctx=64)
    model, measuring = watched(store, tokens), CheckpointMeasuring(store, tmp_path)

    def train(folder):
        save_checkpoint(folder, planted, 5)
        write_model_card(folder, planted, 100)
        measure_all(measuring, model)

    store.build(TRAINING, train)
    best = measuring.scores(model).best
    (induction, at_least), (previous, all_of_it) = best["induction"][0], best["previous token"][0]
    assert (induction, previous) == ("L1H1", "L0H0")
    assert at_least > 0.9
    assert all_of_it > 0.95


def test_a_model_without_heads_has_losses(store, tmp_path):
    architecture = Architecture(n_layers=0, n_heads=2, d_model=10, n_ctx=16)
    bigrams = Transformer(architecture, Tokens.open(tiny_tokens()).vocabulary)
    bigrams.initialize(torch.Generator().manual_seed(0))
    model, measuring = watched(store), CheckpointMeasuring(store, tmp_path)

    def train(folder):
        save_checkpoint(folder, bigrams, 0)
        write_model_card(folder, bigrams, 128)

    store.build(TRAINING, train)
    measure_all(measuring, model)
    scores = measuring.scores(model)
    assert scores.validation == [(0, pytest.approx(mean_loss(bigrams, 16, tiny_tokens()), abs=1e-5))]
    assert not any(scores.best.values())


def test_a_checkpoint_that_moves_away_is_measured_where_it_is_next(store, tmp_path, monkeypatch):
    model, measuring = watched(store), CheckpointMeasuring(store, tmp_path)

    def train(folder):
        save(folder, 4)
        with monkeypatch.context() as patch:
            patch.setattr(checkpoint_measuring, "measure_behaviour", mock.Mock(side_effect=FileNotFoundError))
            assert measuring.measure_next([model])
        assert not measuring.measure_next([model])  # nor is it tried again and again

    store.build(TRAINING, train)
    assert measuring.scores(model) is None
    measure_all(measuring, model)
    assert [tokens for tokens, _ in measuring.scores(model).validation] == [4 * 128]


def test_what_the_run_has_measured_takes_the_place_of_what_was_measured_here(store, tmp_path):
    model, measuring = watched(store), CheckpointMeasuring(store, tmp_path)
    store.build(TRAINING, lambda folder: save(folder, 4))
    measure_all(measuring, model)
    (here,) = measuring.tables(model)

    done = store.build(BEHAVIOUR, lambda folder: shutil.copytree(here, folder, dirs_exist_ok=True) and None)
    assert measuring.tables(model) == [done.folder]
    assert not measuring.scores(model).preliminary


def test_losses_are_those_that_training_has_logged(store, monkeypatch):
    config = TrainingConfig(tokens=16 * 8 * 60, batch_size=8, warmup_steps=10, checkpoints=3)
    architecture, numerics = (
        Architecture(n_layers=1, n_heads=2, d_model=10, n_ctx=16),
        Numerics("cpu", "float32", 1, compiled=False),
    )
    model, seen = watched(store), []
    monkeypatch.setattr("headstream.tasks.training.loop.SAVE_EVERY_SECONDS", 0.0)

    def train(folder):
        def look(progress):
            losses = training_losses(store, model)
            assert len(losses) == progress.saved_step // 10
            seen.append(losses)

        return train_model(
            architecture, config, numerics, tiny_tokens(), folder, cell_id="c", corpus_id="c", on_progress=look
        )

    assert training_losses(store, model) == ()
    store.build(TRAINING, train, resumable=True)
    done = training_losses(store, model)
    assert [tokens for tokens, _ in done] == [step * 128 for step in range(10, 61, 10)]
    assert all(list(losses) == done[: len(losses)] for losses in seen)
    assert {len(losses) for losses in seen} == set(range(7))
