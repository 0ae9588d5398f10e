"""A training step as one CUDA graph: the kernels of small models would take longer to launch than to run."""

from collections.abc import Callable

import torch
from torch import Tensor

PLAIN_STEPS = 3  # before the capture, in which kernels are chosen and the optimisers' state is created


class CapturedStep:
    """A function of tensors of fixed shapes, captured after a few plain runs, and replayed from then on.

    It must read everything that changes from step to step on the GPU, and never wait for the GPU.
    Source: PyTorch's notes on CUDA semantics, "Whole-network capture".
    """

    def __init__(self, step: Callable[..., tuple[Tensor, ...]]) -> None:
        self.step, self.n_steps = step, 0

    def __call__(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Call the function, or replay it."""
        self.n_steps += 1
        if self.n_steps <= PLAIN_STEPS:
            return self._plain(*inputs)
        if self.n_steps == PLAIN_STEPS + 1:
            self.inputs = [own.clone() for own in inputs]
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.found = self.step(*self.inputs)
        for own, given in zip(self.inputs, inputs, strict=True):
            own.copy_(given)
        self.graph.replay()
        return tuple(own.clone() for own in self.found)  # the next replay writes in the same place

    def _plain(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Run the function outside the default stream, from which a graph can capture nothing."""
        here, beside = torch.cuda.current_stream(), torch.cuda.Stream()
        beside.wait_stream(here)
        with torch.cuda.stream(beside):
            found = self.step(*inputs)
        here.wait_stream(beside)
        return found
