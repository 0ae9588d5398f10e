"""A GPU where there is none: tensors that say they are on one and refuse what CUDA would, but are held on the CPU.

Unlike tensors of torch's meta device, whose name it borrows (torch runs backward passes there without asking a driver),
they have values, so that code whose course depends on values runs, too, and what comes out can be compared.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import MagicMock, patch

import torch
from torch import Tensor, UntypedStorage
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

DEVICE = "meta"

Arguments = tuple[object, ...]

aten = torch.ops.aten
TRANSFERS = (aten.to, aten._to_copy, aten.copy_, aten.expand_as)  # operators whose arguments may be on two devices
WAITED_FOR = (aten._local_scalar_dense, aten.nonzero)  # operators whose results decide what comes next
INDEXED = (aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_)
FUSED = ["cpu", "cuda", DEVICE]


class OnGpu(Tensor):
    """A tensor that says it is on a GPU."""

    is_cuda = True  # type: ignore[assignment]
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held: Tensor) -> "OnGpu":
        layout = {"strides": held.stride(), "storage_offset": held.storage_offset(), "dtype": held.dtype}
        with torch.inference_mode(False):  # else views of it could not be made
            return Tensor._make_wrapper_subclass(cls, held.shape, **layout, device=DEVICE)

    def __init__(self, held: Tensor) -> None:
        self.held = held

    @classmethod
    def __torch_dispatch__(cls, operator, types, args=(), kwargs=None):
        return run(operator, args, kwargs or {})

    def __repr__(self) -> str:
        return f"OnGpu({self.held})"

    def tolist(self):
        return self.held.tolist()

    def numpy(self, *, force=False):
        if not force:
            raise TypeError("a tensor on a GPU can't become an array. Use Tensor.cpu() first.")
        return self.held.detach().numpy()

    def new_tensor(self, numbers):
        return torch.tensor(numbers, dtype=self.dtype).to(DEVICE)  # torch would make it behind the stand-in's back


class StandIn(TorchDispatchMode):
    """What is made with the device's name is on it."""

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        return run(operator, args, kwargs or {})


@contextmanager
def stand_in_gpu() -> Iterator[str]:
    """Yields the name of the device."""
    with ExitStack() as stack:
        stack.enter_context(StandIn())
        stack.enter_context(patch("torch.optim.optimizer._get_fused_kernels_supported_devices", lambda: FUSED))
        for name in ("synchronize", "current_stream", "Stream", "stream"):
            stack.enter_context(patch(f"torch.cuda.{name}", MagicMock()))
        stack.enter_context(patch("torch.cuda.CUDAGraph", Graph))
        stack.enter_context(patch("torch.cuda.graph", capture))
        yield DEVICE


class Graph:
    """A CUDA graph: operators and the memory that they read and write, at each replay as when they were captured."""

    capturing: "Graph | None" = None

    def __init__(self) -> None:
        self.work: list[tuple[Callable[..., object], Arguments, dict[str, object], object]] = []
        self.before: dict[int, tuple[UntypedStorage, UntypedStorage]] = {}  # memory that was there, and what it held
        self.own: set[int] = set()  # memory that came with the capture

    def see(self, arguments) -> None:
        """Remember what the GPU's memory holds before the capture changes it."""
        for tensor in flat(arguments):
            if isinstance(tensor, Tensor):
                storage = tensor.untyped_storage()
                if storage.data_ptr() not in self.own | self.before.keys():
                    self.before[storage.data_ptr()] = storage, storage.clone()

    def record(self, operator, args, kwargs, found) -> None:
        """Keep an operator that ran on tensors that are held."""
        self.own |= {t.untyped_storage().data_ptr() for t in flat([found]) if isinstance(t, Tensor)}
        self.own -= self.before.keys()
        self.work.append((operator, mapped(alias, args), kwargs, mapped(alias, found)))

    def replay(self) -> None:
        for operator, args, kwargs, found in self.work:
            again = operator(*args, **kwargs)
            for old, new in zip(flat([found]), flat([again]), strict=True):
                if isinstance(old, Tensor) and old.data_ptr() != new.data_ptr():  # else it was changed in place
                    old.copy_(new)


@contextmanager
def capture(graph: Graph) -> Iterator[None]:
    """Nothing that runs inside changes anything before the graph is replayed."""
    Graph.capturing = graph
    yield
    Graph.capturing = None
    for storage, content in graph.before.values():
        storage.copy_(content)


def alias(leaf):
    """The same memory, whatever shape its tensor may get."""
    return leaf.detach() if isinstance(leaf, Tensor) else leaf


def run(operator, args, kwargs):
    """Run an operator on the CPU, if a GPU would have run it."""
    leaves = list(flat((*args, *kwargs.values())))
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    devices = [leaf for leaf in leaves if isinstance(leaf, torch.device)]
    to_gpu = any(isinstance(tensor, OnGpu) for tensor in tensors)
    if operator is aten._has_compatible_shallow_copy_type.default:
        return False  # what is held would not be copied
    if operator is aten.to.other:
        to_gpu = isinstance(args[1], OnGpu)
    elif operator.overloadpacket not in TRANSFERS and to_gpu:
        require_one_device(operator, args, tensors)
    if devices:
        to_gpu = devices[0].type == DEVICE
    if to_gpu and any(isinstance(leaf, torch.Generator) for leaf in leaves):
        raise RuntimeError(f"{operator}: a generator of the CPU can't draw numbers on a GPU")
    held_args, held_kwargs = mapped(held, args), {name: mapped(held, value) for name, value in kwargs.items()}
    graph = Graph.capturing
    if graph:
        stays = to_gpu and all(isinstance(tensor, OnGpu) for tensor in tensors)
        if operator.overloadpacket in WAITED_FOR or (tensors and not stays):
            raise RuntimeError(f"{operator}: a graph can't capture what the CPU waits for, nor what comes from there")
        graph.see([*held_args, *held_kwargs.values()])
    found = operator(*held_args, **held_kwargs)
    if graph and to_gpu:
        graph.record(operator, held_args, held_kwargs, found)
    if to_gpu and torch.Tag.inplace_view in operator.tags:  # such as squeeze_: the shape of what holds it changes, too
        with no_dispatch():
            operator(*args, **kwargs)
    known = {id(tensor.held): tensor for tensor in tensors if isinstance(tensor, OnGpu)}  # changed in place

    def placed(leaf):
        if not isinstance(leaf, Tensor):
            return leaf
        return known[id(leaf)] if id(leaf) in known else OnGpu(leaf)

    return mapped(placed, found) if to_gpu else found


def flat(arguments) -> Iterator[object]:
    """Arguments of an operator, and what lists among them hold."""
    for argument in arguments:
        if isinstance(argument, (list, tuple)):
            yield from flat(argument)
        else:
            yield argument


def mapped(change, argument):
    """An argument or result, or what it is a list of, changed."""
    if isinstance(argument, (list, tuple)):
        return type(argument)(mapped(change, part) for part in argument)
    return change(argument)


def held(leaf):
    """What stands for an argument on the CPU."""
    if isinstance(leaf, torch.device):
        return torch.device("cpu")
    return leaf.held if isinstance(leaf, OnGpu) else leaf


def require_one_device(operator, args, tensors) -> None:
    """Raises RuntimeError where CUDA would: numbers without an axis may come from the CPU, and so may indices."""
    indices = {id(index) for index in args[1]} if operator.overloadpacket in INDEXED else set()
    if any(not isinstance(t, OnGpu) and t.ndim and id(t) not in indices for t in tensors):
        shapes = [(type(tensor).__name__, tuple(tensor.shape)) for tensor in tensors]
        raise RuntimeError(f"{operator}: all tensors must be on one device, got {shapes}")
