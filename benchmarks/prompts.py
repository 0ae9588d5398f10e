"""Effects on a behaviour of all nodes, exactly, and of all edges, by EAP-IG: how fast, against a run for each node.

The run for each node is a plain hook's: the whole model again, with one output exchanged. Of SmolLM2's shape it is
timed on a part of the nodes, and its time scaled to all; weights are random, as no time depends on them.

python -m benchmarks.prompts
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import psutil
import torch
from jaxtyping import Float
from torch import Tensor

from headstream.models.architecture import Architecture
from headstream.models.nodes import MLP, Head
from headstream.models.prompts.edge_scores import edge_scores
from headstream.models.prompts.exact_effects import exact_node_effects
from headstream.models.prompts.graph import PromptGraph
from headstream.models.prompts.pairs import Pairs
from headstream.models.prompts.patched_runs import base_run
from headstream.models.transformer import Transformer

N_POSITIONS = 16
TOLERANCE = 1e-4
SMALL = Architecture(n_layers=2, n_heads=8, d_model=256, n_ctx=N_POSITIONS, positions="learned")
SMOLLM2 = Architecture(
    n_layers=30, n_heads=9, n_key_value_heads=3, d_model=576, d_mlp=1536, n_ctx=N_POSITIONS, positions="rotary",
    rotary_pairs="half-split", normalization="rmsnorm", feed_forward="swiglu", tied_embeddings=True,
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A model, and how much of the work is done to time it."""

    name: str
    architecture: Architecture
    d_vocab: int
    n_pairs: int
    every: int  # of nodes that the plain way is timed on


CASES = (Case("2 x 8, d_model 256", SMALL, 512, 32, 1), Case("SmolLM2's shape", SMOLLM2, 49_152, 1, 60))


class Peak:
    """The largest memory of this process while a block runs, beyond what it had before, in MB."""

    def __init__(self) -> None:
        self.megabytes = 0.0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look every few milliseconds."""
        process, ended = psutil.Process(), threading.Event()
        before = process.memory_info().rss

        def look() -> None:
            while not ended.wait(0.005):
                self.megabytes = max(self.megabytes, (process.memory_info().rss - before) / 1e6)

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def measured(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds of a run, and the memory in MB that it took beyond what was taken before."""
    peak, start = Peak(), time.perf_counter()
    with peak.watched():
        run()
    return time.perf_counter() - start, peak.megabytes


def random_model(case: Case) -> Transformer:
    """A model before training."""
    model = Transformer(case.architecture, case.d_vocab).initialize(torch.Generator().manual_seed(0))
    return model.requires_grad_(False).eval()


def random_pairs(n_pairs: int, d_vocab: int, n_positions: int = N_POSITIONS) -> Pairs:
    """Pairs of random tokens that differ at some positions."""
    generator = torch.Generator().manual_seed(1)
    clean = torch.randint(d_vocab, (n_pairs, n_positions), generator=generator)
    corrupt = clean.clone()
    corrupt[:, ::3] = torch.randint(d_vocab, corrupt[:, ::3].shape, generator=generator)
    answers = torch.randint(d_vocab, (n_pairs, 2), generator=generator)
    return Pairs(clean, corrupt, answers[:, :1], answers[:, 1:])


def node_effects(model: Transformer, pairs: Pairs) -> Float[Tensor, "way writer pair"]:
    """Effects of all nodes, both ways; that of the embedding is NaN."""
    return torch.stack(exact_node_effects(base_run(model, pairs.clean), base_run(model, pairs.corrupt), pairs))


@torch.inference_mode()
def plain_node_effects(model: Transformer, pairs: Pairs, nodes: Sequence[int]) -> Float[Tensor, "way node pair"]:
    """The same of some nodes, by a whole run for each."""
    clean, corrupt = base_run(model, pairs.clean), base_run(model, pairs.corrupt)
    ways = ((clean, corrupt, pairs.clean, 1), (corrupt, clean, pairs.corrupt, -1))
    return torch.stack(
        [
            torch.stack(
                [
                    sign * (pairs.log_odds(run.logits) - pairs.log_odds(logits_with(model, tokens, node, change)))
                    for node, change in ((clean.graph.writers[i], other.written[i] - run.written[i]) for i in nodes)
                ]
            )
            for run, other, tokens, sign in ways
        ]
    )


def logits_with(model: Transformer, tokens: Tensor, node: object, change: Tensor) -> Tensor:
    """Logits after the last token if a node writes something else."""
    assert isinstance(node, Head | MLP)
    layer = model.layers[node.layer]
    if isinstance(node, MLP):
        assert layer.feed_forward is not None
        hook = layer.feed_forward.register_forward_hook(lambda module, read, written: written + change)
        try:
            return model(tokens)[:, -1]
        finally:
            hook.remove()
    write = layer.attention.write
    object.__setattr__(layer.attention, "write", lambda z: write(z) + change)
    try:
        return model(tokens)[:, -1]
    finally:
        object.__delattr__(layer.attention, "write")


def main() -> dict[str, str]:
    """Print the ratios."""
    torch.set_num_threads(1)  # as in the stage: models are measured side by side
    ratios = []
    for case in CASES:
        model, pairs = random_model(case), random_pairs(case.n_pairs, case.d_vocab)
        n_writers, n_edges = len(PromptGraph(case.architecture).writers), PromptGraph(case.architecture).n_edges
        some = range(1, n_writers, case.every)
        found, expected = node_effects(model, pairs)[:, some], plain_node_effects(model, pairs, some)
        torch.testing.assert_close(found, expected, atol=TOLERANCE, rtol=0)
        seconds, megabytes = measured(partial(node_effects, model, pairs))
        plain, plain_megabytes = measured(partial(plain_node_effects, model, pairs, some))
        ratios.append(plain * (n_writers - 1) / len(some) / seconds)
        print(
            f"{case.name}, {case.n_pairs} pairs of {N_POSITIONS}: effects of {n_writers - 1} nodes {seconds:.2f} s and"
            f" {megabytes:,.0f} MB, a run for each {ratios[-1] * seconds:.2f} s and {plain_megabytes:,.0f} MB:"
            f" {ratios[-1]:.1f} times as fast"
        )
        seconds, megabytes = measured(partial(edge_scores, model, pairs))
        print(f"  EAP-IG of {n_edges:,} edges {seconds:.2f} s and {megabytes:,.0f} MB", flush=True)
    return {"prompts": " and ".join(f"{ratio:.1f}" for ratio in ratios)}


if __name__ == "__main__":
    main()
