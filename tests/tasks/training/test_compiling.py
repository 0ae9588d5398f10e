"""Compiled training against plain training, and code that models of one kind share.

In child processes: here, shapes are checked at each call, by functions that torch can't compile.
"""

import pyarrow.parquet as pq
import pytest
import torch
from test_sparse_and_gated_training import steps, variant
from test_training import PLAIN
from tiny import tiny_tokens

from headstream.tasks.machines.child_process import run_in_process
from headstream.tasks.training.checkpoints import load_model
from headstream.tasks.training.compile_ahead import compile_kind
from headstream.tasks.training.compiled_kind import kind_of
from headstream.tasks.training.model_training import train_model
from headstream.tasks.training.numerics import Numerics

pytestmark = pytest.mark.process

COMPILED = Numerics("cpu", "float32", 1, compiled=True)
GATED = {"n_layers": 3, "n_heads": (2, 2, 1), "d_head": 8, "gates": "dynamic"}


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "compiled"))


def train(folder, architecture, config, numerics, work=train_model):
    folder.mkdir(exist_ok=True)
    names = {"cell_id": "c", "corpus_id": "c"}
    return run_in_process(work, architecture, config, numerics, tiny_tokens(), folder, **names)


def test_compiled_training_agrees_with_plain(tmp_path):
    """But for the order of sums, which Muon's bfloat16 makes a little more of."""
    architecture, config = variant(**GATED), steps(10, gate_penalty=0.1)
    for name, numerics in (("plain", PLAIN), ("compiled", COMPILED)):
        train(tmp_path / name, architecture, config, numerics)
    losses, others = (
        pq.read_table(tmp_path / name / "training.parquet")["loss_nats"].to_pylist() for name in ("plain", "compiled")
    )
    assert losses == pytest.approx(others, abs=1e-3)
    models = [load_model(tmp_path / name, 10) for name in ("plain", "compiled")]
    for p, other in zip(*(model.parameters() for model in models), strict=True):
        torch.testing.assert_close(p, other, atol=0.02, rtol=0)


def test_models_of_other_depths_and_seeds_compile_nothing(tmp_path):
    one, other = (variant(n_layers=2), steps(1)), (variant(n_layers=3), steps(3, seed=1))
    kind = kind_of(*one, COMPILED)
    assert kind == kind_of(*other, COMPILED)
    run_in_process(compiled_without_headers, kind, 270)
    assert train(tmp_path, *other, COMPILED, counted_training) == (0, 4)


def compiled_without_headers(*arguments, **options):
    """Precompiled headers would lie below /tmp, where anybody may put some."""
    from torch._inductor import codecache  # loads torch's compiler

    codecache._precompile_header = forbidden
    compile_kind(*arguments, **options)


def forbidden(*arguments, **options):
    raise AssertionError("a header was precompiled")


def counted_training(*arguments, **options):
    """Graphs that a training compiled, and those that it found in the cache."""
    train_model(*arguments, **options)
    counted = torch._dynamo.utils.counters["inductor"]
    return counted["fxgraph_cache_miss"], counted["fxgraph_cache_hit"]
