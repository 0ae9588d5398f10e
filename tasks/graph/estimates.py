"""How long work takes, roughly: what a plan says where this store has no earlier artifact to go by.

A run corrects it, stage by stage, by what it measures.
"""

from typing import NamedTuple

from headstream.models.architecture import Architecture
from headstream.models.flops import forward_flops
from headstream.tasks.study.analysis_config import Stage

FLOPS_PER_SECOND = {"cpu": 80e9, "cuda": 50e12}  # what one core does, and a GPU
CORPUS_BYTES_PER_SECOND = 10e6
COSTS_SECONDS = 180.0
IMPORTED_BYTES_PER_SECOND = 30e6  # of weights in float32, read, checked and written
IMPORT_PASSES = 90  # of a sequence, that a certificate takes as long as


class AnalysisCost(NamedTuple):
    """What an analysis of a model takes: so many seconds, and as long as so many passes of a sequence."""

    seconds: float
    passes: int  # by the budgets that a study has by default: of quick, and of 6 layers of 8 heads
    reduced_passes: int  # by those of the study smollm2: of SmolLM2-135M


ANALYSIS_COSTS: dict[Stage, AnalysisCost] = {
    "behaviour": AnalysisCost(3.0, 250, 320),  # passes of each checkpoint; of others of the last alone
    "weight-circuits": AnalysisCost(1.0, 500, 650),
    "activation-circuits": AnalysisCost(1.0, 2500, 1100),
    "importance": AnalysisCost(0.1, 7000, 1400),
    "pruning": AnalysisCost(0.1, 18_000, 1200),
    "redundancy": AnalysisCost(0.1, 3500, 800),
    "probes": AnalysisCost(8.0, 2500, 375),
    "feed-forward": AnalysisCost(0.1, 1700, 800),
}


def seconds_of_analyses(
    architecture: Architecture, d_vocab: int, n_checkpoints: int, *, reduced: bool = False
) -> dict[Stage, float]:
    """How long each analysis of a model takes a core, by default or by reduced budgets."""
    a_pass = _seconds_of_pass(architecture, d_vocab)
    return {
        stage: cost.seconds
        + (n_checkpoints if stage == "behaviour" else 1) * (cost.reduced_passes if reduced else cost.passes) * a_pass
        for stage, cost in ANALYSIS_COSTS.items()
    }


def seconds_of_import(architecture: Architecture, d_vocab: int, n_checkpoints: int, checkpoint_bytes: int) -> float:
    """How long reading a model from elsewhere and proving it takes a core."""
    a_pass = _seconds_of_pass(architecture, d_vocab)
    return n_checkpoints * (IMPORT_PASSES * a_pass + checkpoint_bytes / IMPORTED_BYTES_PER_SECOND)


def _seconds_of_pass(architecture: Architecture, d_vocab: int) -> float:
    return forward_flops(architecture, d_vocab, architecture.n_ctx) / FLOPS_PER_SECOND["cpu"]
