"""In which order a study's models are trained and measured, so that no core waits while there is work."""

import heapq
from collections.abc import Iterable

from headstream.tasks.study.analysis_config import Stage
from headstream.tasks.study.cells import Cell
from headstream.tasks.training.device import training_flops

LONGEST_STAGES: tuple[Stage, ...] = (
    "pruning", "importance", "activation-circuits", "redundancy", "probes", "behaviour", "weight-circuits",
    "feed-forward",
)  # fmt: skip


def longest_first(cells: Iterable[Cell], d_vocab: int) -> list[Cell]:
    """The order to train in: no long training is left to the end."""
    return sorted(cells, key=lambda cell: _work(cell, d_vocab), reverse=True)


def first_finished_first(cells: Iterable[Cell], d_vocab: int, jobs: int) -> list[Cell]:
    """The order in which trainings that begin in the order of `cells` end: that of measuring."""
    free_at, ends = [0.0] * jobs, []
    for place, cell in enumerate(cells):
        end = heapq.heappop(free_at) + _work(cell, d_vocab)
        heapq.heappush(free_at, end)
        ends.append((end, place, cell))
    return [cell for *_, cell in sorted(ends, key=lambda e: e[:2])]


def longest_stages_first(stages: Iterable[Stage]) -> list[Stage]:
    """The order to measure a model in: what takes long, the more so in large models, isn't left to the end."""
    return sorted(stages, key=LONGEST_STAGES.index)


def _work(cell: Cell, d_vocab: int) -> float:
    """How long a cell trains, in units that only compare cells."""
    return training_flops(cell.architecture, d_vocab, cell.training.tokens)
