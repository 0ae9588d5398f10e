"""Index the results of five thousand models, three artifacts each: `python -m benchmarks.many_artifacts [MODELS]`."""

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from headstream.tasks.measuring.trained_model import Rows
from headstream.tasks.results.tables import write_table
from headstream.tasks.results.warehouse import build_warehouse
from headstream.tasks.storage.artifact import Artifact, Spec
from headstream.tasks.storage.store import Store

MODELS = 5_000
LAYERS, HEADS, SEEDS, LOGGED = 2, 4, 5, 50
STEPS = (0, 1000)
STUDY = "many"


def model_id(place: int) -> str:
    """The id of one of the models."""
    return f"{LAYERS}L{HEADS}H-{place:06d}"


def results_of(place: int) -> Mapping[str, Mapping[str, Rows]]:
    """What some stages say of a model, in tables."""
    model = {"model_id": model_id(place)}
    shape = {"n_layers": LAYERS, "n_heads": HEADS, "total_heads": LAYERS * HEADS, "heads_per_layer": [HEADS] * LAYERS}
    heads = [
        {**model, "step": step, "layer": layer, "head": head, "prefix_matching": 0.1, "previous_token": place / MODELS}
        for step in STEPS
        for layer in range(LAYERS)
        for head in range(HEADS)
    ]
    return {
        "training": {
            "models": [{**model, **shape, "name": f"{LAYERS}L{HEADS}H", "seed": place % SEEDS}],
            "training": [{**model, "step": step, "loss_nats": 3.0} for step in range(LOGGED)],
        },
        "behaviour": {
            "evaluations": [{**model, "step": step, "validation_loss_nats": 3.0} for step in STEPS],
            "heads": heads,
        },
        "importance": {
            "importance": [
                {**model, "method": method, "layer": layer, "head": head, "score": place / MODELS}
                for method in ("ablation_mean", "weight_norm")
                for layer in range(LAYERS)
                for head in range(HEADS)
            ]
        },
    }


def fill_store(store: Store, n_models: int) -> None:
    """Artifacts of so many models, and of the study that they belong to."""
    made = {
        f"{stage}-{place}": _artifact(store, stage, content, {"model_id": model_id(place)}, {})
        for place in range(n_models)
        for stage, content in results_of(place).items()
    }
    members = [
        {"study": STUDY, "model_id": model_id(i), "cell": f"seed={i % SEEDS} d_model={i // SEEDS}"}
        for i in range(n_models)
    ]
    record: Mapping[str, Rows] = {"studies": [{"study": STUDY, "n_models": n_models}], "study_models": members}
    _artifact(store, "study", record, {"study": STUDY}, made)


def _artifact(
    store: Store, stage: str, content: Mapping[str, Rows], facts: Mapping[str, str], inputs: Mapping[str, Artifact]
) -> Artifact:
    def write(folder: Path) -> Mapping[str, str]:
        for table, rows in content.items():
            write_table(folder, table, rows)
        return facts

    return store.build(Spec(stage, "benchmark", facts, inputs, {}), write)


def main(n_models: int = MODELS) -> dict[str, str]:
    """Fill a store, index it, and print and return how long that took."""
    with TemporaryDirectory() as temporary:
        store, path = Store(Path(temporary) / "store"), Path(temporary) / "warehouse.duckdb"
        fill_store(store, n_models)
        begun = time.perf_counter()
        build_warehouse(store, path)
        seconds = time.perf_counter() - begun
        size = path.stat().st_size / 1e6
        print(f"index of {n_models:,} models, {3 * n_models + 1:,} artifacts: {seconds:.1f} s, {size:.0f} MB")
    return {"index": f"{seconds:.1f} s"}


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
