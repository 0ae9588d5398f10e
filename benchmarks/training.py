"""Training speed against the usual small training script, and the time from raw text to an induction head.

python -m benchmarks.training
"""

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from headstream.models.architecture import Architecture
from headstream.models.heads.attended_keys import attention_on, induction_keys
from headstream.models.repeats import random_period_repeats
from headstream.tasks.study.corpus_config import CorpusConfig
from headstream.tasks.study.tokenizer_config import TokenizerConfig
from headstream.tasks.study.training_config import TrainingConfig
from headstream.tasks.text.corpus_writing import write_corpus
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.text.token_writing import write_tokens
from headstream.tasks.training.device import prepare_process
from headstream.tasks.training.loop import TrainingRun
from headstream.tasks.training.numerics import Numerics, fastest_precision, training_flops

MODEL, TRAINING = Architecture(), TrainingConfig()
TOKENS_PER_STEP = TRAINING.batch_size * MODEL.n_ctx
WARM_STEPS, STEPS, ROUNDS = 15, 25, 7
DETECTED = 0.2  # induction_random_period at which an induction head counts as found


class UsualAttention(nn.Module):
    """Causal self-attention as small training scripts write it."""

    def __init__(self, width: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Add what the heads write."""
        batch, n, width = x.shape
        q, k, v = (part.view(batch, n, self.n_heads, -1).transpose(1, 2) for part in self.qkv(x).split(width, dim=2))
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(z.transpose(1, 2).reshape(batch, n, width))


class UsualModel(nn.Module):
    """The same size of model: learned positions, attention layers, no normalisation."""

    def __init__(self, architecture: Architecture, vocabulary: int) -> None:
        super().__init__()
        a = architecture
        self.embed = nn.Embedding(vocabulary, a.d_model)
        self.position = nn.Embedding(a.n_ctx, a.d_model)
        self.layers = nn.Sequential(*(UsualAttention(a.d_model, n_heads) for n_heads in a.heads_per_layer))
        self.unembed = nn.Linear(a.d_model, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the next token."""
        x = self.embed(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        return self.unembed(self.layers(x))


def usual_step(
    folder: Path,
    threads: int,
    architecture: Architecture = MODEL,
    batch_size: int = TRAINING.batch_size,
    device: str = "cpu",
) -> Callable[[], None]:
    """One step of a plain loop: SDPA, AdamW, clipping, random windows; in float32, on a GPU by bfloat16 autocast."""
    torch.set_num_threads(threads)
    tokens, n_ctx = Tokens.open(folder), architecture.n_ctx
    model = UsualModel(architecture, tokens.vocabulary).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    rng = np.random.default_rng(0)

    def step() -> None:
        starts = rng.integers(0, len(tokens.train) - n_ctx - 1, batch_size)
        windows = torch.from_numpy(tokens.train.windows(starts, n_ctx + 1)).to(device)
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            loss = F.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def our_step(folder: Path, threads: int) -> Callable[[], object]:
    """One step of the real training run at its defaults."""
    prepare_process(threads)
    numerics = Numerics("cpu", fastest_precision("cpu"), threads, compiled=True)
    run = TrainingRun(MODEL, TRAINING, numerics, Tokens.open(folder), folder)
    return lambda: float(run.take_step()[0])


def _worker(
    connection: Connection, make: Callable[[Path, int], Callable[[], object]], folder: Path, threads: int
) -> None:
    step = make(folder, threads)
    for _ in range(WARM_STEPS):
        step()
    connection.send("warm")
    while connection.recv():
        started = time.perf_counter()
        for _ in range(STEPS):
            step()
        connection.send(STEPS * TOKENS_PER_STEP / (time.perf_counter() - started))


class Contestants:
    """Equal processes that train at the same time when told to."""

    def __init__(self, make: Callable[[Path, int], Callable[[], object]], folder: Path, n: int, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.connections = []
        for _ in range(n):
            ours, theirs = context.Pipe()
            context.Process(target=_worker, args=(theirs, make, folder, threads), daemon=True).start()
            self.connections.append(ours)
        for connection in self.connections:
            connection.recv()

    def tokens_per_second(self, n: int | None = None) -> float:
        """Of all of them together, or of the first n, over one turn."""
        for connection in self.connections[:n]:
            connection.send(True)
        return sum(connection.recv() for connection in self.connections[:n])

    def stop(self) -> None:
        """End the processes."""
        for connection in self.connections:
            connection.send(False)


def compare(folder: Path, n: int, threads: int) -> None:
    """Print tokens a second of n runs of ours and of n usual loops, in turns."""
    precision = fastest_precision("cpu")
    peak = matrix_product_peak(n * threads, precision=precision)
    ours, usual = Contestants(our_step, folder, n, threads), Contestants(usual_step, folder, n, threads)
    turns = [(ours.tokens_per_second(), usual.tokens_per_second()) for _ in range(ROUNDS)]
    for contestants in (ours, usual):
        contestants.stop()
    ratio = statistics.median(a / b for a, b in turns)
    speed, other = (statistics.median(turn) for turn in zip(*turns, strict=True))
    flops = training_flops(MODEL, 512, 1) * speed
    print(
        f"{n} at once, {threads} thread(s) each: {speed:,.0f} tokens/s against {other:,.0f}: {ratio:.2f} times;"
        f" {flops / peak:.0%} of the {precision} matrix-product peak of as many cores"
    )


def matrix_product_peak(threads: int, size: int = 1024, device: str = "cpu", precision: str = "bfloat16") -> float:
    """FLOPs a second of a matrix product, the best of some."""
    torch.set_num_threads(threads)
    a = torch.randn(size, size, device=device).to(getattr(torch, precision))
    seconds = []
    for _ in range(20):
        wait_for(device)
        started = time.perf_counter()
        a @ a
        wait_for(device)
        seconds.append(time.perf_counter() - started)
    return 2 * size**3 / min(seconds)


def wait_for(device: str) -> None:
    """Wait until a device has done what it was given."""
    if device == "cuda":
        torch.cuda.synchronize()


def induction_score(run: TrainingRun, tokens: Tokens) -> float:
    """The best head's induction_random_period now."""
    generator = torch.Generator().manual_seed(0)
    repeats = random_period_repeats(torch.from_numpy(tokens.counts), tokens.bos, MODEL.n_ctx, 32, generator)
    assert repeats is not None
    inputs = repeats.tokens[:, :-1]
    with torch.no_grad():
        layers = run.model.trace(inputs).layers
    keys = induction_keys(inputs, tokens.bos)
    return max(float(attention_on(layer.pattern, keys).nanmean(dim=(0, 2)).max()) for layer in layers)


def race_to_induction(folder: Path) -> None:
    """Print the seconds from raw text to a detected induction head, a quarter of the sequences repeated tokens."""
    started = time.perf_counter()
    corpus, encoded, weights = (folder / name for name in ("corpus", "tokens", "weights"))
    for place in (corpus, encoded, weights):
        place.mkdir(parents=True)
    write_corpus(CorpusConfig(), corpus)
    write_tokens(TokenizerConfig(), corpus, encoded)
    read = time.perf_counter() - started
    torch.set_num_threads(os.cpu_count() or 1)
    tokens = Tokens.open(encoded)
    config = TrainingConfig(tokens=3_000_000, repeats_fraction=0.25)
    run = TrainingRun(MODEL, config, Numerics("cpu", fastest_precision("cpu"), 2, compiled=False), tokens, weights)
    score = 0.0
    while score < DETECTED and run.step < run.n_steps:
        run.take_step()
        if run.step % 20 == 0:
            score = induction_score(run, tokens)
    seconds = time.perf_counter() - started
    found = f"an induction head ({score:.2f})" if score >= DETECTED else f"no induction head (best {score:.2f})"
    print(f"raw text to {found}: {seconds:.0f} s, {read:.0f} s of it corpus and tokens, {run.step} steps")


def main() -> None:
    """Run all three."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        race_to_induction(folder)
        compare(folder / "tokens", n=1, threads=1)
        compare(folder / "tokens", n=2, threads=1)
        compare(folder / "tokens", n=1, threads=os.cpu_count() or 1)


if __name__ == "__main__":
    main()
