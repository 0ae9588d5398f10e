"""What analysing a model costs, stage by stage, and how that grows with the model.

Each stage runs in a process of its own on one thread, as in a study. Weights are random: what a stage does hardly
depends on them, but for induction circuits, of which there are none.

python -m benchmarks.analyses
"""

import re
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import torch

from benchmarks.circuits import ROUNDS
from benchmarks.corpus import peak_megabytes
from headstream.models.architecture import Architecture
from headstream.models.losses import sequence_losses
from headstream.models.transformer import Transformer
from headstream.tasks.machines.child_process import run_in_process
from headstream.tasks.measuring.measure import measure
from headstream.tasks.prompts.prompt_writing import write_prompts
from headstream.tasks.study.analyses import ANALYSES
from headstream.tasks.study.analyses.prompts_config import STAGE as PROMPTS
from headstream.tasks.study.analyses.prompts_config import PromptsConfig
from headstream.tasks.study.analysis_config import AnalysisConfig
from headstream.tasks.study.corpus_config import CorpusConfig
from headstream.tasks.study.tokenizer_config import TokenizerConfig
from headstream.tasks.text.corpus_writing import write_corpus
from headstream.tasks.text.token_writing import write_tokens
from headstream.tasks.training.checkpoints import checkpoint_steps, load_model, save_checkpoint, write_model_card

PASSED = 16  # sequences in a plain pass, the unit that costs are compared with
TEXT_FIELD = re.compile(r"(windows|sequences|tokens|repeats|gate_steps|retrain_steps)$")


def with_less_text(config: AnalysisConfig, divisor: int) -> AnalysisConfig:
    """The same analysis on a fraction of the text and of the steps: growth with the model shows on little of them."""
    parts = {}
    for stage in ANALYSES.values():
        part = stage.part_of(config)
        counts = {name: value for name, value in part if isinstance(value, int) and TEXT_FIELD.search(name)}
        parts[stage.section] = part.model_copy(update={name: max(2, n // divisor) for name, n in counts.items()})
    return config.model_copy(update=parts)


LITTLE = with_less_text(AnalysisConfig(), 8)


@dataclass(frozen=True)
class Subject:
    """A model before and after a random walk, a checkpoint a step."""

    n_layers: int = 2
    n_heads: int = 4
    d_model: int = 64
    n_ctx: int = 64
    d_head: int = 16
    vocabulary: int = 512
    checkpoints: int = 2
    normalization: str = "none"
    feed_forward: str = "none"

    @cached_property
    def architecture(self) -> Architecture:
        """The model's shape."""
        sizes = {name: value for name, value in vars(self).items() if name in Architecture.model_fields}
        return Architecture.model_validate(sizes)

    def write(self, folder: Path) -> None:
        """Write its checkpoints."""
        folder.mkdir()
        generator = torch.Generator().manual_seed(0)
        model = Transformer(self.architecture, self.vocabulary).initialize(generator).requires_grad_(False)
        write_model_card(folder, model, 1)
        for step in range(self.checkpoints):
            save_checkpoint(folder, model, step)
            for parameter in model.parameters():
                parameter.add_(0.03 * torch.randn(parameter.shape, generator=generator))


class Cost(NamedTuple):
    """What one stage cost."""

    seconds: float
    processor_seconds: float
    peak_megabytes: float  # with Python and torch


LARGE = Subject(n_layers=12, n_heads=12, d_model=768, d_head=64, n_ctx=128)
QUICK = Subject(n_layers=2, n_heads=4, d_model=128, d_head=32, n_ctx=128)
DEEP = Subject(
    n_layers=6, n_heads=8, d_model=256, d_head=32, n_ctx=128, vocabulary=4096, normalization="layernorm",
    feed_forward="gelu",
)  # fmt: skip
SMALL = Subject(feed_forward="gelu")
GROWTH: dict[str, Sequence[int]] = {  # of SMALL
    "n_heads": (4, 8, 16),
    "n_layers": (2, 4, 8),
    "vocabulary": (512, 4096),
    "checkpoints": (2, 4, 8),
}


def timed_stage(
    stage: str,
    config: AnalysisConfig,
    model: Path,
    tokens: Path,
    folder: Path,
    on_progress: Callable[[float], None],
    device: str = "cpu",
) -> Cost:
    """Run a stage in this process."""
    folder.mkdir(parents=True)
    inputs = {"model": model, "tokens": tokens}
    if "prompts" in ANALYSES[stage].reads:
        inputs["prompts"] = folder / "prompts"
        inputs["prompts"].mkdir()
        own = PROMPTS.part_of(config)
        assert isinstance(own, PromptsConfig)
        write_prompts(own, inputs["prompts"], on_progress)
    started, processor = time.perf_counter(), time.process_time()
    placed = config.model_copy(update={"device": device})
    measure(stage, placed, "model", inputs, folder, on_progress)
    return Cost(time.perf_counter() - started, time.process_time() - processor, peak_megabytes())


def costs_of(
    subject: Subject, config: AnalysisConfig, tokens: Path, stages: Sequence[str] = tuple(ANALYSES)
) -> dict[str, Cost]:
    """What each of some stages costs, of those that a model has."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        subject.write(folder / "model")
        return {
            stage: run_in_process(timed_stage, stage, config, folder / "model", tokens, folder / stage)
            for stage in _stages_of(subject)
            if stage in stages
        }


def _stages_of(subject: Subject) -> list[str]:
    asks_nothing = {name for name, stage in ANALYSES.items() if stage.is_idle(AnalysisConfig())}
    stages = [stage for stage in ANALYSES if stage not in asks_nothing]
    return [stage for stage in stages if stage != "feed-forward" or subject.feed_forward != "none"]


def seconds_a_pass(subject: Subject) -> float:
    """Processor seconds of the loss of one sequence, in a plain pass of some: the median of several passes."""
    torch.set_num_threads(1)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "model"
        subject.write(folder)
        model = load_model(folder, checkpoint_steps(folder)[-1])
    text = torch.randint(subject.vocabulary, (PASSED, subject.n_ctx + 1), generator=torch.Generator().manual_seed(0))
    seconds = []
    for _ in range(1 + ROUNDS):
        started = time.process_time()
        with torch.inference_mode():
            sequence_losses(model, text)
        seconds.append(time.process_time() - started)
    return statistics.median(seconds[1:]) / PASSED


def print_costs(name: str, subject: Subject, tokens: Path) -> None:
    """Print what each stage costs at the defaults of a study, and all of them."""
    unit = seconds_a_pass(subject)
    print(
        f"analyses of {name}, {subject.checkpoints} checkpoints; a plain pass of a sequence takes {1e3 * unit:.2f} ms"
    )
    costs = costs_of(subject, AnalysisConfig(), tokens)
    for stage, cost in costs.items():
        print(
            f"  {stage:20} {cost.seconds:7.1f} s, {cost.processor_seconds:7.1f} s of processor,"
            f" {cost.peak_megabytes:5,.0f} MB, {cost.processor_seconds / unit:9,.0f} passes",
            flush=True,
        )
    print(f"  {'all':20} {sum(c.seconds for c in costs.values()):7.1f} s", end=", ")
    print(f"{sum(c.processor_seconds for c in costs.values()):7.1f} s of processor")


def print_growth(tokens: dict[int, Path]) -> None:
    """Print the exponents by which each stage's processor seconds grow with each size, fitted by least squares."""
    for name, sizes in GROWTH.items():
        subjects = [replace(SMALL, **{name: size}) for size in sizes]  # type: ignore[arg-type]
        costs = [costs_of(subject, LITTLE, tokens[subject.vocabulary]) for subject in subjects]
        print(f"growth of processor seconds with {name} {sizes}, as exponents")
        for stage in costs[0]:
            slope, _ = np.polyfit(np.log(sizes), np.log([own[stage].processor_seconds for own in costs]), 1)
            print(f"  {stage:20} {slope:4.1f}", flush=True)


def minutes_of_all(subject: Subject, tokens: Path) -> float:
    """Wall-clock minutes of all stages, two at once, those that take longest first."""
    with TemporaryDirectory() as temporary, ThreadPoolExecutor(2) as threads:
        folder = Path(temporary)
        subject.write(folder / "model")
        stages = sorted(_stages_of(subject), key=lambda stage: -ANALYSES[stage].cost.passes)
        begun = time.perf_counter()
        run = partial(run_in_process, timed_stage)
        list(threads.map(lambda stage: run(stage, AnalysisConfig(), folder / "model", tokens, folder / stage), stages))
        return (time.perf_counter() - begun) / 60


def main() -> dict[str, str]:
    """Print what the two shapes cost, and how costs grow; returns what targets ask of larger ones."""
    with TemporaryDirectory() as temporary:
        corpus = Path(temporary) / "corpus"
        corpus.mkdir()
        write_corpus(CorpusConfig(), corpus)
        tokens = {vocabulary: Path(temporary) / f"tokens-{vocabulary}" for vocabulary in (512, 4096)}
        for vocabulary, folder in tokens.items():
            folder.mkdir()
            write_tokens(TokenizerConfig(vocabulary=vocabulary), corpus, folder)
        print_growth(tokens)
        print_costs("2 x 4, d_model 128, vocabulary 512", QUICK, tokens[512])
        print_costs("6 x 8, d_model 256, layernorm, gelu, vocabulary 4096", DEEP, tokens[4096])
        deep = minutes_of_all(DEEP, tokens[4096])
        print(f"all stages of that, two at once: {deep:.1f} min", flush=True)
        pruning = costs_of(LARGE, AnalysisConfig(), tokens[512], ["pruning"])["pruning"].seconds / 60
        print(f"pruning of 12 x 12, d_model 768, vocabulary 512: {pruning:.1f} min", flush=True)
        return {"deep": f"{deep:.1f} min", "pruning": f"{pruning:.1f} min"}


if __name__ == "__main__":
    main()
