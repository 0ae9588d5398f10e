"""The most bytes that tensors hold at once, counted while code runs."""

import weakref
from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class TensorBytes(TorchDispatchMode):
    """Counts what tensors hold after each operation; what one needs and frees within itself is not seen."""

    def __init__(self, tensors: Iterable[Tensor] = ()) -> None:
        super().__init__()
        self.held = self.most = 0
        self._known: set[int] = set()
        for tensor in tensors:
            self._count(tensor)

    def __torch_dispatch__(self, operation: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation, and count what it returned."""
        results = operation(*args, **(kwargs or {}))
        for result in tree_leaves(results):
            if isinstance(result, Tensor):
                self._count(result)
        return results

    def _count(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        if id(storage) in self._known:
            return
        self._known.add(id(storage))
        n_bytes = storage.nbytes()
        self.held += n_bytes
        self.most = max(self.most, self.held)
        weakref.finalize(storage, self._forget, id(storage), n_bytes)

    def _forget(self, key: int, n_bytes: int) -> None:
        self._known.discard(key)
        self.held -= n_bytes
