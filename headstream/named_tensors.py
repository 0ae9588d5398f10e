"""Tensors by name, and the hooks that see and change them as a model computes them."""

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from torch import Tensor

from headstream.tasks.errors import UserError
from headstream.tasks.report.sentences import counted
from headstream.tasks.study.mistakes import nearest

Hook = Callable[[Tensor], Tensor | None]  # of a value; what it returns, if anything, stands in its place


class NamedTensors(dict[str, Tensor]):
    """Tensors by name, and the tokens along their axis `pos`; of a batch, a tuple of tokens for each text.

    Names are completed, with a dot, too.

    >>> trace = model.trace("def colour(self)")
    >>> list(trace), trace["L1.pattern"], trace.L1.pattern, trace.logits
    """

    def __init__(self, tokens: Sequence[Any], tensors: dict[str, Tensor]) -> None:
        super().__init__(tensors)
        self.tokens = tuple(tokens)

    def __missing__(self, name: object) -> Tensor:
        raise UserError(f"there is no tensor {name!r:.100} in a trace.{nearest(str(name), self)}")

    def __getattr__(self, name: str) -> "Tensor | NamedTensors":
        if name in self:
            return self[name]
        parts = {full.partition(".")[2]: tensor for full, tensor in self.items() if full.startswith(f"{name}.")}
        if not parts:
            raise AttributeError(f"there is no {name!r} in a trace.{nearest(name, self._beginnings())}")
        return NamedTensors(self.tokens, parts)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._beginnings()]

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def _beginnings(self) -> list[str]:
        return list(dict.fromkeys(name.partition(".")[0] for name in self))

    def __repr__(self) -> str:
        if self.tokens and isinstance(self.tokens[0], tuple):
            texts = counted(len(self.tokens), "text")
            title = f"Trace of {texts} of {counted(len(self.tokens[0]), 'token')}"
        else:
            title = f"Trace of {counted(len(self.tokens), 'token')}: {' '.join(map(str, self.tokens))}"
        width = max(map(len, self), default=0)
        return "\n".join([title, *(f"  {name:<{width}}  {[*tensor.shape]}" for name, tensor in self.items())])


class Kept:
    """What a pass computes under some names, as hooks leave it; of a single text, without the axis `batch`."""

    def __init__(
        self, names: Container[str], hooks: Mapping[str, Sequence[Hook]], *, single: bool, trainable: bool
    ) -> None:
        self.tensors: dict[str, Tensor] = {}
        self._names, self._hooks, self._single, self._trainable = names, hooks, single, trainable

    def __call__(self, name: str, value: Tensor) -> Tensor:
        """Call a value's hooks, keep it, and return what the pass goes on with: `value` itself, if nothing differs."""
        own = value[0] if self._single else value
        shown = _hooked(name, own, self._hooks.get(name, ()))
        if self._trainable and shown.requires_grad:
            shown = shown.view_as(shown)  # what the pass goes on with, so that it has a gradient
            shown.retain_grad()
        if name in self._names:
            self.tensors[name] = shown
        if shown is own:
            return value
        return shown[None] if self._single else shown


def _hooked(name: str, value: Tensor, hooks: Sequence[Hook]) -> Tensor:
    """The value as hooks leave it, whether they return another or write into it; itself, if they do neither.

    Raises:
        UserError: a hook returns something else than a tensor of the same shape.
    """
    if not hooks:
        return value
    current = value.clone()  # others may hold the value
    untouched = current._version
    for hook in hooks:
        returned = hook(current)
        if returned is None:
            continue
        if not isinstance(returned, Tensor) or returned.shape != value.shape:
            got = [*returned.shape] if isinstance(returned, Tensor) else repr(returned)[:100]
            raise UserError(f"a hook of {name} must return a tensor {[*value.shape]} or None, got {got}. Correct it.")
        current, untouched = returned, -1
    return value if current._version == untouched else current


def checked_hooks(hooks: Mapping[str, Hook], names: Sequence[str]) -> Mapping[str, Hook]:
    """The hooks, if each has the name of something that is computed.

    Raises:
        UserError: one doesn't, or isn't a function.
    """
    if not isinstance(hooks, Mapping):
        raise UserError(f'hooks must be functions by name, like {{"{names[-1]}": print}}, got {hooks!r:.100}.')
    for name, hook in hooks.items():
        if name not in names:
            raise UserError(f"there is nothing named {name!r:.100} to hook.{nearest(str(name), names)}")
        if not callable(hook):
            raise UserError(f"the hook of {name} must be a function of its value, got {hook!r:.100}. Correct it.")
    return hooks
