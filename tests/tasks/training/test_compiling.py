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
from headstream.tasks.study.training_interventions import InterventionConfig
from headstream.tasks.training.checkpoints import load_model
from headstream.tasks.training.compile_ahead import compile_kind
from headstream.tasks.training.compiled_kind import kind_of
from headstream.tasks.training.model_training import train_model
from headstream.tasks.training.numerics import Numerics

pytestmark = pytest.mark.process

COMPILED = Numerics("cpu", "float32", 1, compiled=True)
GATED = {"d_head": 8, "n_heads": 2, "gates": "dynamic"}
SHALLOW = variant(**GATED, n_layers=1), steps(1)
MIXED = (2, 1), (2, 2, 1), (1, 2, 1)
DEEP = variant(**GATED, n_layers=3), steps(10, seed=1, gate_penalty=0.1)


def train(folder, architecture, config, numerics, work=train_model):
    folder.mkdir(exist_ok=True)
    names = {"cell_id": "c", "corpus_id": "c"}
    return run_in_process(work, architecture, config, numerics, tiny_tokens(), folder, **names)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The folder of a training whose kind was compiled for another depth and seed, and what it still compiled."""
    folder = tmp_path_factory.mktemp("compiled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder / "code"))
        run_in_process(compiled_without_headers, kind_of(*SHALLOW, COMPILED), 270)
        return folder, train(folder, *DEEP, COMPILED, counted_training)


def test_compiled_training_agrees_with_plain(compiled, tmp_path):
    """But for the order of sums, which Muon's bfloat16 makes a little more of."""
    train(tmp_path, *DEEP, PLAIN)
    folders = tmp_path, compiled[0]
    losses, others = (pq.read_table(folder / "training.parquet")["loss_nats"].to_pylist() for folder in folders)
    assert losses == pytest.approx(others, abs=1e-3)
    for p, other in zip(*(load_model(folder, 10).parameters() for folder in folders), strict=True):
        torch.testing.assert_close(p, other, atol=0.02, rtol=0)


def test_models_of_other_depths_and_seeds_compile_nothing(compiled):
    assert kind_of(*SHALLOW, COMPILED) == kind_of(*DEEP, COMPILED)
    assert compiled[1] == (0, 4)  # forward and backward, of a layer and of the loss


def test_a_layer_of_each_number_of_heads_makes_a_kind():
    kinds = {kind_of(variant(d_head=8, n_layers=len(heads), n_heads=heads), steps(1), COMPILED) for heads in MIXED}
    (kind,) = kinds
    assert kind.architecture.heads_per_layer == (1, 2)


def test_graphs_captured_where_an_edge_is_cut_train_as_plain_code_does(tmp_path):
    cut = InterventionConfig.model_validate({"kind": "cut", "edges": ["L0H0 -> L1H0.K"]})
    architecture = variant(d_head=8, n_layers=2, n_heads=(2, 1))
    config = steps(3).model_copy(update={"interventions": (cut,)})
    train(tmp_path / "plain", architecture, config, PLAIN)
    assert train(tmp_path / "captured", architecture, config, COMPILED, captured_training) == 3  # two layers, the loss
    last = [load_model(tmp_path / name, 3) for name in ("plain", "captured")]
    for p, other in zip(*(model.parameters() for model in last), strict=True):
        torch.testing.assert_close(p, other, atol=0.02, rtol=0)


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


def captured_training(*arguments, **options):
    """Train with graphs captured as for compiling, and run without being made into code; returns their number."""
    compile = torch.compile
    torch.compile = lambda function, **options: compile(function, dynamic=False, backend="aot_eager")
    train_model(*arguments, **options)
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]
