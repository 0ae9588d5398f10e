"""Training on a GPU: as on the CPU but for rounding, whether its steps run one by one or as one captured graph."""

import pytest
import torch
from stand_in_gpu import stand_in_gpu
from test_sparse_and_gated_training import steps, variant
from test_training import train, weights
from tiny import tiny_tokens

from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training import captured_step
from headstream.tasks.training.loop import TrainingRun
from headstream.tasks.training.numerics import Numerics

KINDS = (
    {},
    {"gates": "hard_concrete"},
    {"positions": "rotary", "normalization": "layernorm", "feed_forward": "gelu", "biases": True},
)


def losses(folder, fields, device, n=12):
    architecture, config = variant(**fields), steps(n, warmup_steps=4)
    run = TrainingRun(architecture, config, Numerics(device, "float32", 1, False), Tokens.open(tiny_tokens()), folder)
    return [float(run.take_step()[0]) for _ in range(n)], [p.detach().cpu() for p in run.model.parameters()]


@pytest.mark.parametrize("fields", KINDS, ids=str)
def test_captured_steps_are_steps(tmp_path, fields, monkeypatch):
    on_cpu, _ = losses(tmp_path, fields, "cpu")
    with stand_in_gpu() as device:
        captured, found = losses(tmp_path, fields, device)
        monkeypatch.setattr(captured_step, "PLAIN_STEPS", 100)
        one_by_one, plain = losses(tmp_path, fields, device)
    assert captured == one_by_one
    assert captured == pytest.approx(on_cpu, abs=1e-3)
    assert all(map(torch.equal, found, plain))


def test_an_interrupted_run_goes_on_where_it_was_saved(tmp_path):
    def stop_at_20(progress):
        if progress.step == 20:
            raise KeyboardInterrupt

    with stand_in_gpu() as device:
        options = {"config": steps(30), "numerics": Numerics(device, "bfloat16", 1, compiled=False)}
        train(tmp_path / "whole", **options)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "halves", on_progress=stop_at_20, save_every_seconds=0, **options)
        train(tmp_path / "halves", **options)
    assert weights(tmp_path / "halves") == weights(tmp_path / "whole")


def test_what_a_gpu_refuses():
    """The stand-in of these tests does so, too."""
    here, generator = torch.ones(2), torch.Generator().manual_seed(0)
    with stand_in_gpu() as device:
        there = here.to(device)
        assert (there + 1).tolist() == [2, 2]
        for refused in (
            lambda: there + here,
            lambda: here[there.long()],
            lambda: there.numpy(),
            lambda: torch.rand(2, device=device, generator=generator),
        ):
            with pytest.raises((RuntimeError, TypeError)):
                refused()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph), pytest.raises(RuntimeError, match="waits for"):
            there.sum().item()
