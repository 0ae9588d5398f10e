"""What `make gpu` finds out: whether a GPU finds what a CPU does, and how fast it is; a function a section."""

import math
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import torch

from benchmarks.analyses import DEEP, LITTLE, Subject, timed_stage
from benchmarks.corpus import peak_megabytes
from benchmarks.training import Contestants, matrix_product_peak, usual_step, wait_for
from headstream.models.architecture import Architecture
from headstream.tasks.measuring.measure import measure
from headstream.tasks.study.analyses import ANALYSES
from headstream.tasks.study.analysis_config import AnalysisConfig
from headstream.tasks.study.training_config import TrainingConfig
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training import loop
from headstream.tasks.training.captured_step import CapturedStep
from headstream.tasks.training.checkpoints import weights_sha256
from headstream.tasks.training.device import prepare_process
from headstream.tasks.training.loop import TrainingRun
from headstream.tasks.training.model_training import train_model
from headstream.tasks.training.numerics import Numerics, training_flops
from headstream.tasks.training.training_progress import Progress

WITHIN_NATS, WITHIN_SCORES = 0.01, 1e-3
SMALL, LARGE = Architecture(), Architecture(n_layers=12, n_heads=12, d_model=768, n_ctx=512)
DEFAULTS, SUBJECT = AnalysisConfig(), replace(DEEP, vocabulary=512)


class Row(NamedTuple):
    """One line of the table; one with nothing to hold tells a number."""

    what: str
    measured: str
    wanted: str = ""
    holds: bool | None = None


Tell = Callable[[Row], None]


@dataclass(frozen=True)
class Sizes:
    """How much the sections run."""

    small: Architecture = SMALL
    large: Architecture = LARGE
    large_batch: int = 32
    compared_steps: int = 300
    resumed_steps: int = 600
    tokens: int = 3_000_000  # with repeats, that an induction head takes to form
    warm_steps: int = 15
    timed_steps: int = 50
    peak: int = 8192  # rows of the matrices whose product shows the device's peak
    compiles: bool = True
    analysis: AnalysisConfig = DEFAULTS
    timed_analysis: AnalysisConfig = LITTLE
    subject: Subject = SUBJECT


@dataclass(frozen=True)
class Bench:
    """Where sections run, on which tokens of `folder`, and how much."""

    device: str
    folder: Path
    sizes: Sizes = Sizes()

    @property
    def tokens(self) -> Path:
        """Folder of the tokens."""
        return self.folder / "tokens"

    @property
    def model(self) -> Path:
        """Folder of a model that was trained on the device."""
        return self.folder / "model"

    def train(self, folder: Path, config: TrainingConfig, on_progress: Callable[[Progress], None]) -> None:
        """Train a small model on the device, or go on where that was interrupted."""
        folder.mkdir(exist_ok=True)
        names = {"cell_id": "gpu", "corpus_id": "gpu"}
        numerics = Numerics(self.device, "bfloat16", 1, compiled=False)
        train_model(self.sizes.small, config, numerics, self.tokens, folder, **names, on_progress=on_progress)

    def config(self, n_steps: int) -> TrainingConfig:
        """Training of a small model of so many steps."""
        config = TrainingConfig(checkpoints=2)
        return config.model_copy(update={"tokens": n_steps * config.batch_size * self.sizes.small.n_ctx})


def losses_agree(bench: Bench, tell: Tell) -> None:
    """The same batches and initial weights give the same losses, step by step."""
    curves = []
    for device in ("cpu", bench.device):
        prepare_process(os.cpu_count() or 1)
        numerics = Numerics(device, "float32", 1, compiled=False)
        config = bench.config(bench.sizes.compared_steps)
        run = TrainingRun(bench.sizes.small, config, numerics, Tokens.open(bench.tokens), bench.folder)
        losses = torch.stack([run.take_step()[0] for _ in range(run.n_steps)]).cpu()
        curves.append(torch.stack([ten.mean() for ten in losses.split(10)]))
    difference = float((curves[1] - curves[0]).abs().max())  # NaN if one of them is
    what = f"losses of {bench.sizes.compared_steps} steps, float32, means of ten, at most apart"
    measured = f"{difference:.5f} nats, both end at {curves[0][-1]:.3f} and {curves[1][-1]:.3f}"
    tell(Row(what, measured, f"≤ {WITHIN_NATS} nats", difference <= WITHIN_NATS))


def trains(bench: Bench, tell: Tell) -> None:
    """A model of the default size is trained, whose heads later sections look at."""
    config = TrainingConfig(tokens=bench.sizes.tokens, repeats_fraction=0.25, checkpoints=2)
    started = time.perf_counter()
    bench.train(bench.model, config, _unheard)
    tell(Row(f"{config.tokens:,} tokens trained on, with all around it", f"{time.perf_counter() - started:.1f} s"))


def scores_agree(bench: Bench, tell: Tell) -> None:
    """The trained model's heads score as they do on the CPU, and the same one is the induction head."""
    tables: dict[str, dict[str, pd.DataFrame]] = {}
    for device in dict.fromkeys(("cpu", bench.device)):
        for stage in ("behaviour", "weight-circuits", "importance"):
            folder = bench.folder / f"{stage}-{device}"
            folder.mkdir()
            config = bench.sizes.analysis.model_copy(update={"device": device})
            measure(stage, config, "gpu", {"model": bench.model, "tokens": bench.tokens}, folder, _unheard)
            for path in folder.glob("*.parquet"):
                if path.stem in ("heads", "importance"):
                    tables.setdefault(f"{stage}, {path.stem}", {})[device] = pd.read_parquet(path)
    for name, found in tables.items():
        here, there = found["cpu"].select_dtypes("number"), found[bench.device].select_dtypes("number")
        column, worst = furthest_apart(here, there)
        measured = f"{worst:.1e} ({column})"
        what = f"{name}: scores at most apart, of their size where that is above 1"
        tell(Row(what, measured, f"≤ {WITHIN_SCORES:g}", worst <= WITHIN_SCORES))
    best = {device: _induction_head(table) for device, table in tables["behaviour, heads"].items()}
    measured = f"{best[bench.device]}; on the CPU {best['cpu']}"
    tell(Row("induction head", measured, "the same", best[bench.device] == best["cpu"]))


def furthest_apart(here: pd.DataFrame, there: pd.DataFrame) -> tuple[str, float]:
    """The column whose numbers differ most, of their size where that is above 1: infinitely where one is missing."""
    apart = ((there - here).abs() / here.abs().clip(lower=1)).mask(here.isna() & there.isna(), 0.0).fillna(math.inf)
    return str(apart.max().idxmax()), float(apart.max().max())


def _induction_head(heads: pd.DataFrame) -> str:
    last = heads[heads["step"] == heads["step"].max()]
    best = last.loc[last["induction_random_period"].idxmax()]
    return f"L{best['layer']:.0f}H{best['head']:.0f}"


def resumes(bench: Bench, tell: Tell) -> None:
    """A training that is killed goes on from where it was saved, and ends where it would have."""
    config = bench.config(bench.sizes.resumed_steps)
    whole, killed = bench.folder / "whole", bench.folder / "killed"
    bench.train(whole, config, _unheard)
    process = multiprocessing.get_context("spawn").Process(target=_train_slowly, args=(bench, killed, config))
    process.start()
    while process.is_alive() and not (killed / loop.RESUME / loop.STATE).exists():
        time.sleep(0.01)
    process.kill()
    process.join()
    heard: list[Progress] = []
    bench.train(killed, config, heard.append)
    losses = [pd.read_parquet(folder / "training.parquet")["loss_nats"].iloc[-1] for folder in (whole, killed)]
    difference, same = abs(losses[1] - losses[0]), weights_sha256(whole) == weights_sha256(killed)
    measured = f"from step {heard[0].step} of {heard[0].n_steps}, the last losses {difference:.5f} nats apart, "
    measured += "the same weights" if same else "other weights"
    holds = process.exitcode == -signal.SIGKILL and heard[0].step > 0 and difference <= WITHIN_NATS
    tell(Row("training goes on after kill -9", measured, f"≤ {WITHIN_NATS} nats", holds))


def _train_slowly(bench: Bench, folder: Path, config: TrainingConfig) -> None:
    loop.SAVE_EVERY_SECONDS = 0.0
    bench.train(folder, config, lambda progress: time.sleep(0.1))


def small_is_fast(bench: Bench, tell: Tell) -> None:
    """Steps of a small model against a plain loop's."""
    _race(bench, "2 x 4, d_model 128", bench.sizes.small, TrainingConfig(), tell)


def large_is_fast(bench: Bench, tell: Tell) -> None:
    """Steps of a large model against a plain loop's."""
    config = TrainingConfig(batch_size=bench.sizes.large_batch)
    _race(bench, "12 x 12, d_model 768, context 512", bench.sizes.large, config, tell)


def _race(bench: Bench, name: str, architecture: Architecture, config: TrainingConfig, tell: Tell) -> None:
    peak = matrix_product_peak(1, bench.sizes.peak, bench.device)
    tokens = Tokens.open(bench.tokens)
    step_tokens, flops = config.batch_size * architecture.n_ctx, training_flops(architecture, tokens.vocabulary, 1)
    usual = usual_step(bench.tokens, 1, architecture, config.batch_size, bench.device)
    plain, _ = _speed(bench, usual, step_tokens)
    tell(Row(f"{name}: plain loop", f"{plain:,.0f} tokens/s"))
    speeds: list[float] = []
    for how in ("kernel by kernel", "captured", "captured and compiled")[: 2 + bench.sizes.compiles]:
        numerics = Numerics(bench.device, "bfloat16", 1, compiled="compiled" in how)
        run = TrainingRun(architecture, config, numerics, tokens, bench.folder)
        if how == "kernel by kernel" and isinstance(run.advance, CapturedStep):
            run.advance = run.advance.step
        own, seconds = _speed(bench, run.take_step, step_tokens)
        speeds.append(own)
        measured = f"{own:,.0f} tokens/s, {own / plain:.2f} times, {own * flops / peak:.1%} of the bfloat16 peak"
        tell(Row(f"{name}: {how}", f"{measured}; warm after {seconds:.1f} s"))
        if numerics.compiled and own > speeds[1]:
            pays = seconds / (1 / speeds[1] - 1 / own) * flops
            tell(Row(f"{name}: compiling pays from", f"{pays:.1e} FLOPs of training"))
    tell(Row(f"{name}: the fastest of ours", f"{max(speeds) / plain:.2f} times", "≥ 1", max(speeds) >= plain))
    tell(Row(f"{name}: peak of memory, all of these", f"{_peak_megabytes(bench.device):,.0f} MB"))


def _speed(bench: Bench, step: Callable[[], object], step_tokens: int) -> tuple[float, float]:
    """Tokens a second once warm, and the seconds until then."""
    started = time.perf_counter()
    for n in (bench.sizes.warm_steps, bench.sizes.timed_steps):
        warm = time.perf_counter()
        for _ in range(n):
            step()
        wait_for(bench.device)
    return n * step_tokens / (time.perf_counter() - warm), warm - started


def two_share(bench: Bench, tell: Tell) -> None:
    """Two processes that train on one device at once, together against one alone."""
    contestants = Contestants(partial(_step_of, bench), bench.tokens, 2, 1)
    alone, together = contestants.tokens_per_second(1), contestants.tokens_per_second()
    contestants.stop()
    measured = f"{together:,.0f} tokens/s together, {together / alone:.2f} times one alone"
    tell(Row("two processes that share the device", measured))


def _step_of(bench: Bench, folder: Path, threads: int) -> Callable[[], object]:
    prepare_process(threads)
    numerics = Numerics(bench.device, "bfloat16", threads, compiled=False)
    run = TrainingRun(bench.sizes.small, TrainingConfig(), numerics, Tokens.open(folder), folder)
    return lambda: float(run.take_step()[0])


def analyses_are_fast(bench: Bench, tell: Tell) -> None:
    """Stages of the analysis of a model of many heads, on little text, on the device and on a core of the CPU."""
    subject = bench.sizes.subject
    subject.write(bench.folder / "subject")
    for stage in (name for name, own in ANALYSES.items() if not own.is_idle(bench.sizes.timed_analysis)):
        seconds = {}
        for device in dict.fromkeys((bench.device, "cpu")):
            folder = bench.folder / f"timed-{stage}-{device}"
            cost = timed_stage(
                stage, bench.sizes.timed_analysis, bench.folder / "subject", bench.tokens, folder, _unheard, device
            )
            seconds[device] = cost.seconds
        measured = f"{seconds[bench.device]:.1f} s; on a core of the CPU {seconds['cpu']:.1f} s"
        tell(Row(f"{stage} of {subject.architecture.name}, little text", measured))
    tell(Row("analyses: peak of memory", f"{_peak_megabytes(bench.device):,.0f} MB"))


def _unheard(progress: object) -> None:
    """Progress that nobody asks for."""


def _peak_megabytes(device: str) -> float:
    return peak_megabytes() if device == "cpu" else torch.cuda.max_memory_allocated() / 1e6


SECTIONS: dict[str, Callable[[Bench, Tell], None]] = {
    section.__name__: section
    for section in (
        losses_agree,
        trains,
        scores_agree,
        resumes,
        small_is_fast,
        large_is_fast,
        two_share,
        analyses_are_fast,
    )
}
