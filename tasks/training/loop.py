"""The training loop of one model, and exact resumption after an interruption at any step."""

import hashlib
import json
import logging
import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError, safe_open
from torch import Tensor
from torch.func import functional_call

from headstream.models.architecture import Architecture
from headstream.models.gates import active_fraction, expected_open
from headstream.models.hard_concrete import noisy
from headstream.models.heads.gradual_pruning import GradualPruning
from headstream.models.optimisers import Muon, rate_factor
from headstream.models.parameters import declared_parameters
from headstream.models.transformer import Transformer
from headstream.tasks.errors import WorkError
from headstream.tasks.storage.sealing import RESUME
from headstream.tasks.study.training_config import TrainingConfig
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.text.training_batches import Batches
from headstream.tasks.training.captured_step import CapturedStep
from headstream.tasks.training.checkpoints import save_checkpoint, save_whole, write_model_card
from headstream.tasks.training.cross_entropy import CrossEntropy, mean_cross_entropy
from headstream.tasks.training.intervened_training import IntervenedTraining
from headstream.tasks.training.numerics import Numerics
from headstream.tasks.training.parameter_groups import build_optimizers, set_rates
from headstream.tasks.training.training_progress import STATE, Progress
from headstream.tasks.training.training_steps import kept_steps, step_count

LOG_EVERY_STEPS = 10
SAVE_EVERY_SECONDS = 10.0

log = logging.getLogger(__name__)


def next_token_loss(
    model: Transformer,
    windows: Int[Tensor, "batch pos_and_next"],
    precision: str,
    noise: Float[Tensor, "batch head"] | None,
    gates: list[Tensor],
    cross_entropy: CrossEntropy = mean_cross_entropy,
) -> Float[Tensor, ""]:
    """Mean cross-entropy of the next token in nats, with matrix products in the given precision.

    Static gates are sampled with `noise`, uniform in 0..1, if it is given. Each layer's gates are appended to `gates`.
    """
    copies = {}
    if precision == "bfloat16":
        copies = {name: p.bfloat16() for name, p, own in declared_parameters(model) if own.in_products}
    if noise is not None:
        log_alpha = _gate_parameters(model)
        by_layer = noise.split([len(own) for own in log_alpha.values()], dim=1)
        copies |= {name: noisy(own, u) for (name, own), u in zip(log_alpha.items(), by_layer, strict=True)}
    logits = functional_call(model, copies, (windows[:, :-1],), {"gates": gates})
    return cross_entropy(logits, windows[:, 1:])


def gate_penalty(model: Transformer, gates: list[Tensor], config: TrainingConfig) -> Float[Tensor, ""] | None:
    """The penalty on open gates that is added to the loss, in nats; None without gates.

    `gates` are those of the forward pass, from which open dynamic ones are counted.
    """
    n_heads = sum(model.architecture.heads_per_layer)
    if model.architecture.gates == "none" or not n_heads:
        return None
    if model.architecture.gates == "hard_concrete":
        return config.gate_penalty * expected_open(list(_gate_parameters(model).values()))
    return config.gate_penalty * (n_heads * (active_fraction(gates) - config.active_fraction)) ** 2


def _gate_parameters(model: Transformer) -> dict[str, Tensor]:
    return {name: p for name, p, own in declared_parameters(model) if own.role == "gate"}


class TrainingRun:
    """The state of one training run: everything that a resumed run must restore."""

    def __init__(
        self, architecture: Architecture, config: TrainingConfig, numerics: Numerics, tokens: Tokens, folder: Path
    ) -> None:
        self.config, self.numerics, self.folder = config, numerics, folder
        model = Transformer(architecture, tokens.vocabulary)
        self.model = model.initialize(torch.Generator().manual_seed(config.seed)).to(numerics.device)
        self.optimizers = build_optimizers(self.model, config, numerics.precision)
        self.batches = Batches(
            tokens,
            n_ctx=architecture.n_ctx,
            batch_size=config.batch_size,
            seed=config.seed,
            repeats_fraction=config.repeats_fraction,
        )
        self.tokens_per_step = config.batch_size * architecture.n_ctx
        self.n_steps = step_count(architecture, config)
        self.pruning = GradualPruning(self.model, self.n_steps, config.prune_to)
        self.intervened = IntervenedTraining(self.model, config.interventions, tokens) if config.interventions else None
        self.step = self.saved_step = 0
        self.log: list[dict[str, float]] = []  # rows of the table `training`
        self.limit = math.log(tokens.vocabulary) + 1.0  # a nat worse than uniform guessing: diverged
        self.cross_entropy: CrossEntropy = mean_cross_entropy
        self.advance: Callable[..., tuple[Tensor, ...]] = self._advance
        changes = config.prune_to < 1 or config.interventions  # from step to step, which a captured graph can't
        if self.model.W_E.is_cuda and not changes:
            self.advance = CapturedStep(self._advance)
        if numerics.compiled:
            from headstream.tasks.training.compiling import (  # loads torch's compiler
                compile_layers,
                compiled_cross_entropy,
            )

            compile_layers(self.model, numerics.device)
            self.cross_entropy = compiled_cross_entropy(numerics.device)

    def train(self, on_progress: Callable[[Progress], None]) -> None:
        """Train to the end, from where an interrupted run was last saved, if there was one."""
        self._restore()
        write_model_card(
            self.folder, self.model, self.tokens_per_step, self.intervened.as_kept() if self.intervened else None
        )
        kept = set(kept_steps(self.n_steps, self.config.checkpoints))
        if self.step == 0:
            save_checkpoint(self.folder, self.model, 0)
        on_progress(self._progress(compiling=self.numerics.compiled))
        started = time.perf_counter() - (self.log[-1]["seconds"] if self.log else 0.0)
        saved, first = time.perf_counter(), self.step
        pending: list[tuple[Tensor, Tensor]] = []
        while self.step < self.n_steps:
            pending.append(self.take_step())
            if self.numerics.compiled and self.step == first + 1:
                on_progress(self._progress())
            log_now = self.step % LOG_EVERY_STEPS == 0 or self.step == self.n_steps
            if not (log_now or self.step in kept):
                continue
            if log_now:
                self._write_log(pending, time.perf_counter() - started)
                pending.clear()
                on_progress(self._progress())
            if self.step in kept:
                if not all(p.isfinite().all() for p in self.model.parameters()):
                    self._stop(self.step, "left weights that are not finite")
                save_checkpoint(self.folder, self.model, self.step)
            if log_now and time.perf_counter() - saved > SAVE_EVERY_SECONDS:
                self._save()
                on_progress(self._progress())
                saved = time.perf_counter()
        self._check_last_weights()

    def take_step(self) -> tuple[Tensor, Tensor]:
        """Take one step of the optimisers; returns loss and gradient norm without waiting for the device."""
        windows = torch.from_numpy(self.batches.batch(self.step))
        if self.numerics.device == "cuda":
            windows = windows.pin_memory()
        windows = windows.to(self.numerics.device, non_blocking=True)
        factor = rate_factor(self.step, self.n_steps, self.config.warmup_steps, self.config.final_rate_fraction)
        set_rates(self.optimizers, factor)
        if self.intervened:
            self.intervened.begin(self.step * self.tokens_per_step)
        noise = self._gate_noise()
        loss, norm = self.advance(windows) if noise is None else self.advance(windows, noise)
        self.step += 1
        if self.config.prune_to < 1:
            self.pruning.after_step(self.step)
        return loss, norm

    def _advance(self, windows: Tensor, noise: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Compute a batch's gradient and update the weights; returns loss and gradient norm."""
        loss, penalty = self._losses(windows, noise)
        (loss if penalty is None else loss + penalty).backward()
        if self.config.prune_to < 1:
            self.pruning.before_step()
        if self.intervened:
            self.intervened.before_step()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.gradient_clip)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        if self.intervened:
            self.intervened.after_step()
        return loss.detach(), norm

    def _losses(self, windows: Tensor, noise: Tensor | None) -> tuple[Tensor, Tensor | None]:
        gates: list[Tensor] = []
        learned = self.intervened.learned(windows) if self.intervened else None
        cross_entropy = self.cross_entropy if learned is None else partial(self.cross_entropy, learned=learned)
        loss = next_token_loss(self.model, windows, self.numerics.precision, noise, gates, cross_entropy)
        return loss, gate_penalty(self.model, gates, self.config)

    def _gate_noise(self) -> Tensor | None:
        """Random numbers for static gates: like a batch, a pure function of seed and step."""
        a = self.model.architecture
        if a.gates != "hard_concrete":
            return None
        rng = np.random.default_rng([self.config.seed, 2, self.step])  # `Batches` draws with 0 and 1
        uniform = rng.random((self.config.batch_size, sum(a.heads_per_layer)), dtype=np.float32)
        return torch.from_numpy(uniform).to(self.numerics.device)

    def _write_log(self, pending: list[tuple[Tensor, Tensor]], seconds: float) -> None:
        losses = torch.stack([loss for loss, _ in pending]).tolist()
        for i, loss in enumerate(losses):
            if not math.isfinite(loss):
                self._stop(self.step - len(losses) + i + 1, "became " + ("NaN" if math.isnan(loss) else "infinite"))
        loss = sum(losses) / len(losses)
        if self.step > self.config.warmup_steps and self._has_diverged(loss):
            self._stop(self.step, f"rose to {loss:.4g} nats")
        row = {
            "step": self.step,
            "tokens": self.step * self.tokens_per_step,
            "loss_nats": loss,
            "learning_rate": float(self.optimizers[-1].param_groups[0]["lr"]),
            "gradient_norm": float(pending[-1][1]),
            "heads_left": self.pruning.n_left,
            "seconds": seconds,
        }
        self.log.append(row)

    def _has_diverged(self, loss: float) -> bool:
        """True if a loss is far above the lowest so far, or above that of uniform guessing."""
        return loss > min([self.limit, *(row["loss_nats"] + 2.0 for row in self.log)])

    @torch.no_grad()
    def _check_last_weights(self) -> None:
        """Check the final weights on one more batch, since the last step's loss is that of the weights before it.

        Raises:
            WorkError: the loss isn't finite, or has diverged.
        """
        windows = torch.from_numpy(self.batches.batch(self.n_steps)).to(self.numerics.device)
        if self.intervened:
            self.intervened.begin(self.n_steps * self.tokens_per_step)
        with torch.compiler.set_stance("force_eager"):  # one pass doesn't pay for compiling it
            loss = next_token_loss(self.model, windows, self.numerics.precision, None, []).item()
        if not math.isfinite(loss) or self._has_diverged(loss):
            self._stop(self.n_steps, f"ended at {loss:.4g} nats")

    def _stop(self, step: int, what: str) -> None:
        good = [row for row in self.log if row["loss_nats"] <= self.limit]
        last_good = f"{good[-1]['loss_nats']:.3f} nats at step {good[-1]['step']}" if good else "none"
        rates = [f"learning_rate (now {self.config.learning_rate})"]
        if any(isinstance(optimizer, Muon) for optimizer in self.optimizers):
            rates.insert(0, f"muon_learning_rate (now {self.config.muon_learning_rate})")
        raise WorkError(
            f"training diverged: the loss {what} at step {step} of {self.n_steps}; last good loss: {last_good}. Try a"
            f" lower {' or '.join(rates)}, more warmup_steps, or precision = 'float32'."
        )

    def tokens_per_second(self) -> float | None:
        """Training speed without the first logged steps, which include compiling; None until there are enough."""
        if len(self.log) < 3:
            return None
        first, last = self.log[0], self.log[-1]
        return (last["tokens"] - first["tokens"]) / (last["seconds"] - first["seconds"])

    def _progress(self, compiling: bool = False) -> Progress:
        loss = self.log[-1]["loss_nats"] if self.log else None
        return Progress(self.step, self.n_steps, self.saved_step, loss, self.tokens_per_second(), compiling)

    # Resuming. One file holds weights, optimiser state and log, replaced whole.

    def _state(self) -> dict[str, Tensor]:
        state = {f"model.{name}": p.detach() for name, p in self.model.named_parameters()}
        for i, optimizer in enumerate(self.optimizers):
            for j, values in optimizer.state_dict()["state"].items():
                state |= {f"optimizer.{i}.{j}.{name}": value for name, value in values.items()}
        state |= {"pruning.importance": self.pruning.importance, "pruning.left": self.pruning.left}
        return {name: value.cpu().contiguous() for name, value in state.items()}

    def _save(self) -> None:
        state, progress = self._state(), {"step": str(self.step), "log": json.dumps(self.log)}
        checksum = _checksum(state, progress)
        save_whole(state, self.folder / RESUME / STATE, {**progress, "checksum": checksum})
        self.saved_step = self.step

    def _restore(self) -> None:
        path = self.folder / RESUME / STATE
        if not path.exists():
            return
        try:
            state, progress = _read_state(path)
        except ValueError as error:
            log.warning("%s is damaged, so training begins again: %s", path, error)
            return
        with torch.no_grad():
            for name, p in self.model.named_parameters():
                p.copy_(state[f"model.{name}"])
        self.pruning.importance.copy_(state["pruning.importance"])
        self.pruning.left.copy_(state["pruning.left"])
        for i, optimizer in enumerate(self.optimizers):
            restored: dict[int, dict[str, Tensor]] = {}
            for name, value in state.items():
                if name.startswith(f"optimizer.{i}."):
                    _, _, j, key = name.split(".", 3)
                    restored.setdefault(int(j), {})[key] = value
            optimizer.load_state_dict({**optimizer.state_dict(), "state": restored})
        self.step = self.saved_step = int(progress["step"])
        self.log = json.loads(progress["log"])


def _read_state(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read the tensors and the progress that a run is resumed from.

    Raises: ValueError when the file isn't as it was saved.
    """
    try:
        with safe_open(path, framework="pt") as file:
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            progress = file.metadata() or {}
    except SafetensorError as error:
        raise ValueError(str(error)) from error
    if progress.pop("checksum", None) != _checksum(state, progress):
        raise ValueError("it does not match its checksum")
    return state, progress


def _checksum(state: dict[str, Tensor], progress: dict[str, str]) -> str:
    digest = hashlib.sha256(json.dumps(progress, sort_keys=True).encode())
    for name, values in sorted(state.items()):
        digest.update(f"{name} {values.dtype} {tuple(values.shape)}".encode())
        digest.update(values.numpy().tobytes())
    return digest.hexdigest()
