"""The stage `prompt-circuits`: the circuit of a behaviour, found on pairs of prompts."""

from pydantic import BaseModel, Field

from headstream.tasks.study.field_types import MAX_COUNT, Count, Seed
from headstream.tasks.study.stage import Stage


class PromptCircuitsConfig(BaseModel, frozen=True, extra="forbid", strict=True, allow_inf_nan=False):
    """The [analysis.prompt_circuits] section of a study: how many pairs, edges and circuits are measured of a set."""

    pairs: int = Field(200, ge=8, le=100_000, description="Maximum number of pairs of a set that are measured.")
    steps: int = Field(
        5, ge=1, le=1000, description="Points between the two prompts at which gradients of edges are taken (EAP-IG)."
    )
    exact_pairs: Count = Field(
        40, description="Maximum number of pairs on which nodes and edges are patched one by one."
    )
    exact_edges: Count = Field(200, description="Edges with the largest scores that are patched one by one.")
    drawn_edges: int = Field(
        50,
        ge=0,
        le=MAX_COUNT,
        description="Edges drawn at random that are patched, too, so that scores are judged by exact effects.",
    )
    all_edges_up_to: int = Field(
        2000, ge=0, le=MAX_COUNT, description="Number of edges up to which all of a model's are patched one by one."
    )
    random_circuits: Count = Field(5, description="Random circuits of each size, beside the one that is found.")
    null_pairs: Count = Field(40, description="Maximum number of pairs on which random circuits run.")
    resamples: int = Field(
        100, ge=2, le=MAX_COUNT, description="Resamples of the pairs, from which circuits are found again."
    )
    checkpoints: int = Field(
        8,
        ge=0,
        le=MAX_COUNT,
        description="Maximum number of checkpoints at which the last one's circuit is run and its edges are scored: the"
        " first, the last, and those where the behaviour changes most; 0 or 1 for none.",
    )
    seed: Seed = Field(0, description="Seed of the edges, circuits and resamples that are drawn.")


FORMATION = ("circuit_checkpoints", "edge_checkpoints")
STAGE = Stage(
    "prompt-circuits",
    work="headstream.tasks.measuring.prompt_circuits:measure_prompt_circuits",
    reads=("model", "tokens", "prompts"),
    writes=(
        "prompts",
        "prompt_scores",
        "node_effects",
        "prompt_edges",
        "circuit_curves",
        "prompt_circuits",
        *FORMATION,
    ),
    config=PromptCircuitsConfig,
    description="Circuits of a behaviour, found on pairs of prompts.",
    counts_work="headstream.tasks.study.prompt_circuits_work:count_work",
    idle_without="prompts.sets",
    large_fields={
        "pairs": 48,
        "exact_pairs": 12,
        "exact_edges": 100,
        "drawn_edges": 30,
        "random_circuits": 2,
        "null_pairs": 8,
    },
    trial_fields={
        "pairs": 16,
        "steps": 2,
        "exact_pairs": 8,
        "exact_edges": 10,
        "drawn_edges": 5,
        "all_edges_up_to": 100,
        "random_circuits": 2,
        "null_pairs": 8,
        "resamples": 10,
        "checkpoints": 3,
    },
    order=9,
)
