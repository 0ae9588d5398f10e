"""A model, and everything that it computes on a text."""

import copy
import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pandas as pd
import torch
from jaxtyping import Int
from torch import Tensor

from headstream.arguments import whole_number
from headstream.attention_on_text import Attention, AttentionOnTexts
from headstream.drawn_tokens import drawn_tokens
from headstream.given_text import Given, ids_of_text, sequences_of
from headstream.models.bos import NO_BOS
from headstream.models.transformer import Transformer
from headstream.models.visited_pass import activation_names, visited_pass
from headstream.named_tensors import Hook, Kept, NamedTensors, checked_hooks
from headstream.switched_off import SwitchedOff, switched_off
from headstream.tasks.errors import UserError
from headstream.tasks.report.sentences import counted
from headstream.tasks.text.vocabulary import Vocabulary

if TYPE_CHECKING:
    from headstream.asked_model import AskedPairs

Found = TypeVar("Found")


class Model:
    """A model in float32 on the CPU: one of a study (`StudyModel`), or one from elsewhere that `hs.load` opened.

    `module` is the transformer itself, a torch module that maps tokens [batch, pos] to logits [batch, pos, d_vocab].

    Wherever a method takes a text, it takes token ids as well, as they are (BOS included); or a list of either, for
    which it returns a list, a series or a frame with a row for each. Heads that are `off` write what `replace` says:
    nothing ("zero"), their mean over other text ("mean"), or what they write on another passage ("resample").

    >>> model = hs.open("quick").model("2L4H", seed=0)
    >>> model.attention("def colour(self): return self.colour")
    >>> model.loss(["return self", "return None"], off=["L1H0"], replace="mean")

    Raises:
        UserError: a text isn't one, or is longer than the model's context; or there is no such head or replacement.
    """

    def __init__(self, label: str, module: Transformer, tokens: Vocabulary) -> None:
        self.label, self.module, self._tokens = label, module, tokens
        self._hooks: dict[str, tuple[Hook, ...]] = {}
        self._trainable = False
        self.bos = tokens.bos  # NO_BOS for a model that was trained without
        self.vocabulary = tokens.token_labels()  # readable tokens, no two alike: a space is `·`

    @property
    def names(self) -> list[str]:
        """The names of everything that a pass computes, which `trace` returns and hooks are called on.

        >>> model.names
        """
        return activation_names(self.module)

    def encode(self, text: str) -> Int[Tensor, "1 pos"]:
        """A text as token ids, after BOS, if the model was trained with one.

        >>> model.module(model.encode("return self"))  # logits

        Raises:
            UserError: it isn't text, or is longer than the model's context.
        """
        return ids_of_text(text, self._tokens, self.module.architecture.n_ctx)

    def tokens(self, text: Given) -> list[str] | Any:
        """A text's tokens in readable form, after BOS, if the model was trained with one.

        >>> model.tokens("return self")
        """
        return self._each(text, self._labels)

    def attention(self, text: Given, off: Sequence[str] = (), replace: str = "zero") -> Attention | Any:
        """The attention of every head on a text, which draws itself in a notebook.

        >>> model.attention("def colour(self): return self.colour", off=["L0H0"])["L1H0"]  # [query, key]
        """
        gone = self._switched_off(off, replace)
        names = [name for name in self.names if name.endswith(".pattern")]

        def on(ids: Int[Tensor, "1 pos"]) -> Attention:
            kept = self._run(ids, gone, names)
            own = tuple(ids[0].tolist())
            return Attention(
                tuple(self._labels(ids)), own, tuple(kept[name] for name in names), own[0] == self.bos != NO_BOS
            )

        found = self._each(text, on)
        return AttentionOnTexts(found) if isinstance(found, list) else found

    def next(self, text: Given, n: int = 10, off: Sequence[str] = (), replace: str = "zero") -> pd.DataFrame:
        """The n likeliest tokens after a text, with their probabilities and logits, the likeliest first.

        >>> model.next("for i in ", off=["L1H0"])
        """
        n, gone = whole_number(n, "n", 1), self._switched_off(off, replace)

        def after(ids: Int[Tensor, "1 pos"]) -> pd.DataFrame:
            logits = self._run(ids, gone, ["logits"])["logits"][-1].detach()
            best = logits.topk(min(n, len(logits))).indices
            columns = {"probability": logits.softmax(-1)[best].tolist(), "logit": logits[best].tolist()}
            return pd.DataFrame(columns, index=[self.vocabulary[token] for token in best.tolist()]).rename_axis("token")

        return _one_frame(self._each(text, after))

    def loss(self, text: Given, off: Sequence[str] = (), replace: str = "zero") -> float | Any:
        """The mean loss over a text's tokens, each after all before it, in nats; BOS isn't predicted.

        Of a batch, a series; of a trainable model, a tensor that gradients flow from, of a batch one for each text.

        >>> model.loss("return self.colour", off=["L0H0"], replace="mean")

        Raises:
            UserError: the text has too few tokens for one to be predicted.
        """
        gone = self._switched_off(off, replace)

        def of(ids: Int[Tensor, "1 pos"]) -> Tensor:
            if ids.shape[1] < 2:
                raise UserError("a loss needs a token after the first, got one token. Give a longer text.")
            log_probabilities = self._run(ids, gone, ["logits"])["logits"][:-1].log_softmax(-1)
            return -log_probabilities.gather(1, ids[0, 1:, None]).mean()

        found = self._each(text, of)
        if self._trainable:
            return torch.stack(found) if isinstance(found, list) else found
        return pd.Series([each.item() for each in found], name="loss_nats") if isinstance(found, list) else found.item()

    def generate(
        self,
        text: Given,
        n: int = 20,
        seed: int = 0,
        temperature: float = 1.0,
        off: Sequence[str] = (),
        replace: str = "zero",
    ) -> str | Any:
        """A text and n tokens that the model goes on with, drawn by seed; at temperature 0, the likeliest ones.

        The model reads the last n_ctx tokens of what is there.

        >>> model.generate("def ", n=30, seed=1)
        """
        n, seed, gone = whole_number(n, "n"), whole_number(seed, "seed"), self._switched_off(off, replace)
        if isinstance(temperature, bool) or not isinstance(temperature, Real) or not 0 <= temperature < math.inf:
            raise UserError(f"temperature must be a number from 0 on, got {temperature!r:.100}. 1 is usual.")
        decode, n_ctx = self._tokens.tokenizer.decode, self.module.architecture.n_ctx
        sequences, is_batch = self._read(text)

        def predict(ids: Int[Tensor, "1 pos"]) -> Tensor:
            return self._run(ids[:, -n_ctx:], gone, ["logits"])["logits"][-1]

        gone_on = []
        for given, ids in zip(text if is_batch else [text], sequences, strict=True):
            own = drawn_tokens(predict, ids, n, seed, float(temperature), self.bos)
            known = [token for token in ids[0].tolist() if token != self.bos]
            begun = given if isinstance(given, str) else decode(known, skip_special_tokens=False)
            gone_on.append(begun + decode(own, skip_special_tokens=False))
        return gone_on if is_batch else gone_on[0]

    def logit_lens(self, text: Given, n: int = 1, off: Sequence[str] = (), replace: str = "zero") -> pd.DataFrame:
        """The n likeliest next tokens after each token of a text, if the model ended before each of its layers.

        A row for each token of the text, a column for the stream before each layer (R0, R1, ...) and at the end.
        Source: nostalgebraist 2020, interpreting GPT: the logit lens.

        >>> model.logit_lens("return self.colour")
        """
        n, gone, module = whole_number(n, "n", 1), self._switched_off(off, replace), self.module
        names = [*(f"L{i}.residual_in" for i in range(len(module.layers))), "logits"]

        def read(ids: Int[Tensor, "1 pos"]) -> pd.DataFrame:
            *streams, logits = (each.detach() for each in self._run(ids, gone, names).values())
            ends = [*(module.unembed(module.final_norm(stream)).detach() for stream in streams), logits]
            best = {f"R{i}": end.topk(min(n, end.shape[-1])).indices.tolist() for i, end in enumerate(ends)}
            told = {
                column: [" ".join(self.vocabulary[token] for token in row) for row in rows]
                for column, rows in best.items()
            }
            return pd.DataFrame(told, index=[f"{place} {token}" for place, token in enumerate(self._labels(ids))])

        return _one_frame(self._each(text, read))

    def trace(
        self, text: Given, off: Sequence[str] = (), replace: str = "zero", hooks: Mapping[str, Hook] | None = None
    ) -> NamedTensors:
        """Everything that a forward pass over a text computes, by name, with heads switched off if wanted.

        `embedding` [pos, d_model]; for each layer, here L0: `L0.residual_in` [pos, d_model], `L0.pattern` [head, query,
        key], `L0.z` [head, pos, d_value], `L0.head_outputs` [head, pos, d_model], `L0.attention_out`,
        `L0.feed_forward_out` (if there is one) and `L0.residual_out` [pos, d_model], `L0.gates` [head, pos] (if there
        are any); `residual_final` [pos, d_model], after the final norm; `logits` [pos, d_vocab]. Of a batch, whose
        texts must have the same number of tokens, all have a first axis `batch`.

        `hooks` are as those of `model.hooks`, for this pass.

        >>> model.trace("return self.colour", hooks={"L0.pattern": lambda pattern: pattern.round()})["logits"]

        Raises:
            UserError: texts of a batch differ in length; or a hook is wrong.
        """
        sequences, is_batch = self._read(text)
        if len({ids.shape[1] for ids in sequences}) > 1:
            lengths = ", ".join(str(ids.shape[1]) for ids in sequences[:20])
            raise UserError(f"texts that are traced together must be equally long, got {lengths} tokens. Trace each.")
        labels = [tuple(self._labels(ids)) for ids in sequences]
        gone, names = self._switched_off(off, replace), self.names
        with self.hooks(hooks or {}):
            tensors = self._run(torch.cat(sequences), gone, names, single=not is_batch)
        return NamedTensors(labels if is_batch else labels[0], tensors)

    @contextmanager
    def hooks(self, hooks: Mapping[str, Hook]) -> Iterator[None]:
        """Call functions on what passes compute, by name (`names` lists all), within a `with`.

        A function sees the tensor that `trace` has under that name. If it returns another, or writes into it, the pass
        goes on with that. All methods call hooks, on one text at a time; only `trace` runs a batch at once.

        >>> with model.hooks({"L1.pattern": lambda pattern: pattern.roll(1, 0)}):
        ...     model.loss("return self.colour")

        Raises:
            UserError: nothing has that name; or a hook returns no tensor of the same shape.
        """
        before = self._hooks
        own = {name: (*before.get(name, ()), hook) for name, hook in checked_hooks(hooks, self.names).items()}
        self._hooks = {**before, **own}
        try:
            yield
        finally:
            self._hooks = before

    def trainable(self) -> Self:
        """The same model with weights of its own, through which gradients flow.

        After a backward pass, its parameters have gradients, and so has each tensor that `trace` returned.

        >>> own = model.trainable()
        >>> own.loss("return self.colour").backward()
        >>> own.module.W_E.grad
        """
        own = copy.copy(self)
        own.module, own._trainable = copy.deepcopy(self.module).requires_grad_(True), True
        return own

    def prompts(self, prompts: str | Path | pd.DataFrame, pairs: int = 200, seed: int = 0) -> "AskedPairs":
        """What the model makes of a prompt set: one that ships, a file, or a frame of prompt, corrupt, answer, wrong.

        >>> model.prompts("repeats").scores.accuracy  # of `pairs`, a row for each pair

        Raises:
            UserError: there is no such set or file, or it isn't as it must be.
        """
        from headstream.asked_model import ask

        return ask(self.module, self._tokens, prompts, pairs, seed)

    def patch(self, clean: str, corrupt: str, answer: str, wrong: str) -> pd.DataFrame:
        """The exact effect of every head and feed-forward layer on the log-odds of an answer, for one pair of prompts.

        >>> model.patch("7 8 7", "7 9 7", "q", "z").head()

        A node's effect is what is lost if it writes what it writes at the corrupt prompt; restored is what it alone
        brings back there; shares are of the whole difference between the prompts.

        Raises:
            UserError: the prompts have different numbers of tokens, or an answer merges with their ends.
        """
        from headstream.asked_model import patch

        return patch(self.module, self._tokens, clean, corrupt, answer, wrong)

    def _read(self, text: Given) -> tuple[list[Int[Tensor, "1 pos"]], bool]:
        return sequences_of(text, self._tokens, self.module.architecture.n_ctx)

    def _each(self, text: Given, ask: Callable[[Int[Tensor, "1 pos"]], Found]) -> Found | list[Found]:
        """The answer for a text, or those for each of a batch."""
        sequences, is_batch = self._read(text)
        return [ask(ids) for ids in sequences] if is_batch else ask(sequences[0])

    def _labels(self, ids: Int[Tensor, "1 pos"]) -> list[str]:
        return [self.vocabulary[token] for token in ids[0].tolist()]

    def _switched_off(self, off: Sequence[str], replace: str) -> SwitchedOff:
        return switched_off(self.module, self._tokens, off, replace)

    def _run(
        self, ids: Int[Tensor, "batch pos"], gone: SwitchedOff, names: Container[str], *, single: bool = True
    ) -> dict[str, Tensor]:
        """What a pass computes under some names, in the order in which it does; of a single text without `batch`."""
        kept = Kept(names, self._hooks, single=single, trainable=self._trainable and torch.is_grad_enabled())
        visited = {name for name in self.names if name in names or name in self._hooks}
        with torch.set_grad_enabled(self._trainable and torch.is_grad_enabled()):
            visited_pass(self.module, ids, kept, visited, *gone.on(ids.shape[1]))
        return kept.tensors

    def __repr__(self) -> str:
        a = self.module.architecture
        heads = f"{counted(sum(a.heads_per_layer), 'head')} in {counted(a.n_layers, 'layer')}"
        return (
            f"Model {self.label}{self._which()}: {heads}, d_model {a.d_model}, n_ctx {a.n_ctx}, vocabulary"
            f" {self.module.d_vocab}"
        )

    def _which(self) -> str:
        """What follows its label where it is printed."""
        return ""


def _one_frame(found: pd.DataFrame | list[pd.DataFrame]) -> pd.DataFrame:
    """The frame of a text, or one of a batch's, in which an index `text` comes first."""
    return pd.concat(dict(enumerate(found)), names=["text"]) if isinstance(found, list) else found
