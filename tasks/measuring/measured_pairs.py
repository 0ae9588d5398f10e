"""The pairs of a prompt set that a model can do, in batches, with what all that is measured on them shares."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.prompts.graph import PromptGraph
from headstream.models.prompts.pairs import Pairs
from headstream.models.transformer import Transformer
from headstream.tasks.progress import OnProgress, within
from headstream.tasks.prompts.kept_pairs import KeptPairs

BYTES_OF_A_RUN = 200 << 20  # of what writers wrote; a batch holds a few times as many
MOST_AT_ONCE = 64

Found = TypeVar("Found")


@dataclass(frozen=True)
class MeasuredPairs:
    """Pairs, the log-odds that the model has at both prompts of each, and which of them count as one."""

    model: Transformer
    kept: KeptPairs
    odds: Float[Tensor, "2 pair"]
    clusters: Int[Tensor, "pair"]
    threads: int = 1
    on_progress: OnProgress = lambda fraction: None  # is told how much of all that is measured is done

    def of_part(self, start: float, end: float) -> "MeasuredPairs":
        """The same pairs for one part of all that is measured, which takes from one fraction of the time to another."""
        return replace(self, on_progress=within(self.on_progress, start, end))

    @cached_property
    def graph(self) -> PromptGraph:
        """The graph of the model."""
        return PromptGraph(self.model.architecture)

    @property
    def whole(self) -> Float[Tensor, "pair"]:
        """The difference between the two prompts of each pair."""
        return self.odds[0] - self.odds[1]

    @property
    def every(self) -> Int[Tensor, "pair"]:
        """The places of all pairs."""
        return torch.arange(len(self.clusters))

    def sample(self, n: int) -> Int[Tensor, "chosen"]:
        """The places of at most n pairs, evenly spread over all."""
        n = min(n, len(self.clusters))
        return torch.arange(n) * len(self.clusters) // n

    @property
    def at_once(self) -> int:
        """Number of pairs in a batch: as many as what is kept of a run of the longest leaves room for."""
        longest = max(pairs.clean.shape[1] for _, pairs in self.kept.by_length())
        each = len(self.graph.writers) * longest * self.model.architecture.d_model * self.model.W_E.itemsize
        return max(1, min(MOST_AT_ONCE, BYTES_OF_A_RUN // each))

    def batches(self, places: Int[Tensor, "chosen"]) -> Iterator[tuple[Int[Tensor, "_"], Pairs]]:
        """The pairs at these places on the model's device, some at a time, of one length each, with their places."""
        wanted = torch.zeros(len(self.clusters), dtype=torch.bool)
        wanted[places] = True
        for own, pairs in self.kept.by_length():
            here = wanted[own].nonzero()[:, 0]
            for some in here.split(self.at_once):
                if len(some):
                    yield own[some], pairs[some].to(self.model.W_E.device)

    def on_batches(
        self, places: Int[Tensor, "chosen"], run: Callable[[Pairs], Found]
    ) -> Iterator[tuple[Int[Tensor, "_"], Found]]:
        """What a function finds on each batch of the pairs at these places, with their places: some side by side.

        Each batch is computed by one thread, so that numbers don't depend on how many there are.
        """
        n_done = 0
        with ThreadPoolExecutor(self.threads) as pool:
            for own, found in _side_by_side(pool, self.threads, self.batches(places), run):
                yield own, found
                n_done += len(own)
                self.on_progress(n_done / len(places))


def _side_by_side(
    pool: ThreadPoolExecutor,
    at_once: int,
    batches: Iterable[tuple[Int[Tensor, "_"], Pairs]],
    run: Callable[[Pairs], Found],
) -> Iterator[tuple[Int[Tensor, "_"], Found]]:
    """What a function finds on each batch, in order; one more than can run is there, so that no thread waits for it."""
    running: deque[tuple[Tensor, Future[Found]]] = deque()
    for own, pairs in batches:
        running.append((own, pool.submit(run, pairs)))
        if len(running) > at_once:
            places, future = running.popleft()
            yield places, future.result()
    for places, future in running:
        yield places, future.result()
