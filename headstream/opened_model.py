"""A model at one of its checkpoints, and everything that it computes on a text."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.bos import NO_BOS
from headstream.models.bos_in_tensors import opened
from headstream.models.heads.attended_keys import attention_on, induction_keys, previous_token_keys
from headstream.models.nodes import Head
from headstream.models.transformer import Trace, Transformer
from headstream.tasks.errors import UserError
from headstream.tasks.report.sentences import counted
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training.checkpoints import checkpoint_steps, load_model, tokens_at
from headstream.tasks.words.markdown import short_count

if TYPE_CHECKING:
    from headstream.asked_model import AskedPairs


@dataclass(frozen=True)
class Attention:
    """Attention on a text, by layer and head: `attention["L1H0"]` or `attention[1, 0]` is [query, key]."""

    tokens: tuple[str, ...]  # as people read them
    ids: tuple[int, ...]
    layers: tuple[Float[Tensor, "head query key"], ...]  # rows sum to 1; layers may have different numbers of heads
    opens_with_bos: bool = True

    @property
    def heads(self) -> list[str]:
        """The names of all heads, like L1H0."""
        return [str(Head(layer, head)) for layer, patterns in enumerate(self.layers) for head in range(len(patterns))]

    def __getitem__(self, head: str | tuple[int, int]) -> Float[Tensor, "query key"]:
        """The pattern of one head.

        Raises:
            UserError: there is no such head.
        """
        is_place = isinstance(head, tuple) and len(head) == 2
        name = str(Head(*head)) if is_place else head
        if not isinstance(name, str) or name not in self.heads:
            raise UserError(f"a head must be one of {', '.join(self.heads) or 'none'}, got {head!r}. Choose one.")
        patterns = [pattern for layer in self.layers for pattern in layer]
        return patterns[self.heads.index(name)]

    def frame(self, head: str | tuple[int, int]) -> pd.DataFrame:
        """The pattern of one head as a table: a row per query and a column per key, named by position and token."""
        names = [f"{place} {token}" for place, token in enumerate(self.tokens)]
        return pd.DataFrame(self[head].numpy(), index=names, columns=names)

    def __repr__(self) -> str:
        first = "to BOS" if self.opens_with_bos else "to the first"
        headings = "".join(f"{heading:>14}" for heading in (first, "to itself", "to previous", "after copies"))
        lines = [
            f"Attention on {counted(len(self.tokens), 'token')}: {' '.join(self.tokens)}",
            f"{'mean share':<10}{headings}",
        ]
        return "\n".join([*lines, *(f"{head:<10}{self._shares(head)}" for head in self.heads)])

    def _shares(self, head: str) -> str:
        """Mean shares of attention to some kinds of keys, over queries after the first that have such keys."""
        ids = torch.tensor([self.ids])
        itself = torch.eye(ids.shape[1]).bool()[None]
        first, bos = itself[:, :1].expand_as(itself), self.ids[0] if self.opens_with_bos else NO_BOS
        shares = (
            attention_on(self[head][None, None], keys)[0, 0, 1:].nanmean()
            for keys in (first, itself, previous_token_keys(ids, bos), induction_keys(ids, bos))
        )
        return "".join(f"{'-' if share.isnan() else f'{share:.2f}':>14}" for share in shares)


class NamedTensors(dict[str, Tensor]):
    """Tensors by name, and the tokens along their axis `pos`."""

    def __init__(self, tokens: Sequence[str], tensors: dict[str, Tensor]) -> None:
        super().__init__(tensors)
        self.tokens = tuple(tokens)

    def __repr__(self) -> str:
        lines = [f"Trace of {counted(len(self.tokens), 'token')}: {' '.join(self.tokens)}"]
        width = max(map(len, self), default=0)
        return "\n".join([*lines, *(f"  {name:<{width}}  {[*tensor.shape]}" for name, tensor in self.items())])


class Model:
    """A model of a study as it was after a training step, in float32 on the CPU.

    `module` is the transformer itself, a torch module that maps tokens [batch, pos] to logits [batch, pos, d_vocab].
    """

    def __init__(self, label: str, model_id: str, training: Path, tokens: Path, step: int | None = None) -> None:
        self.label, self.model_id = label, model_id
        self._training, self._tokens = training, Tokens.open(tokens)
        self.steps = checkpoint_steps(training)
        self.step = self.steps[-1] if step is None else step
        self.module: Transformer = load_model(training, self.step)
        self.bos = self._tokens.bos  # NO_BOS for a model that was trained without
        self.vocabulary = self._tokens.token_labels()  # readable tokens, no two alike: a space is `·`

    def at(self, step: int | None = None, tokens: float | None = None) -> "Model":
        """The same model after a training step, or at the checkpoint nearest to a number of tokens.

        Raises:
            UserError: no weights were kept at that step, or not exactly one of both is given.
        """
        if (step is None) == (tokens is None):
            raise UserError(f"give either a step or tokens, got step={step!r} and tokens={tokens!r}. Leave one out.")
        if tokens is not None:
            if isinstance(tokens, bool) or not isinstance(tokens, Real) or not -math.inf < tokens < math.inf:
                raise UserError(f"tokens must be a finite number, got {tokens!r:.100}. Give a number, like 5e6.")
            known = {kept: seen for kept, seen in tokens_at(self._training).items() if seen is not None}
            if not known:
                raise UserError(f"the training tokens of {self.label} are not known. Choose a step: {self.steps}.")
            step = min(known, key=lambda kept: abs(known[kept] - tokens))
        if isinstance(step, bool) or not isinstance(step, Real) or step not in self.steps:
            kept = ", ".join(map(str, self.steps))
            raise UserError(f"no weights were kept at step {step!r:.100}. Choose one of {kept}.")
        return Model(self.label, self.model_id, self._training, self._tokens.folder, int(step))

    @property
    def tokens_seen(self) -> int | None:
        """Number of tokens that it was trained on up to here; None if that isn't known."""
        return tokens_at(self._training)[self.step]

    def encode(self, text: str) -> Int[Tensor, "1 pos"]:
        """A text as token ids, after BOS, if the model was trained with one.

        Raises:
            UserError: it isn't text, or is longer than the model's context.
        """
        try:
            encoding = self._tokens.tokenizer.encode(text, add_special_tokens=False)
        except (TypeError, UnicodeError):
            raise UserError(f"a text must be a string of Unicode, got {text!r:.100}. Correct it.") from None
        ids = opened(torch.tensor([encoding.ids], dtype=torch.int64), self.bos)
        n, n_ctx = ids.shape[1], self.module.architecture.n_ctx
        if n > n_ctx:
            raise UserError(f"a text must fit n_ctx={n_ctx} tokens, BOS included, got {n}. Shorten it.")
        if not n:
            raise UserError("the text is empty, and the model has no BOS to read instead. Give some text.")
        return ids

    def tokens(self, text: str) -> list[str]:
        """A text's tokens in readable form, after BOS, if the model was trained with one."""
        return [self.vocabulary[token] for token in self.encode(text)[0].tolist()]

    def attention(self, text: str, off: Sequence[str] = (), replace: str = "zero") -> Attention:
        """The attention of every head on a text, with heads switched off if wanted.

        Heads that are `off` write what `replace` says: nothing (zero), their mean over other text (mean), or what they
        write on another passage (resample).

        >>> model.attention("def colour(self): return self.colour", off=["L0H0"])["L1H0"]

        Raises:
            UserError: it isn't text, or is longer than the model's context; or there is no such head.
        """
        ids = self.encode(text)
        patterns = tuple(layer.pattern[0] for layer in self._run(ids, off, replace).layers)
        return Attention(tuple(self.tokens(text)), tuple(ids[0].tolist()), patterns, self.bos != NO_BOS)

    def next(self, text: str, n: int = 10, off: Sequence[str] = (), replace: str = "zero") -> pd.DataFrame:
        """The n likeliest tokens after a text, with their probabilities and logits, the likeliest first.

        >>> model.next("for i in ", off=["L1H0"])

        Raises:
            UserError: as `attention` does.
        """
        logits = self._run(self.encode(text), off, replace).logits[0, -1]
        best = logits.topk(min(n, len(logits))).indices
        columns = {"probability": logits.softmax(-1)[best].tolist(), "logit": logits[best].tolist()}
        return pd.DataFrame(columns, index=[self.vocabulary[token] for token in best.tolist()]).rename_axis("token")

    def loss(self, text: str, off: Sequence[str] = (), replace: str = "zero") -> float:
        """The mean loss over a text's tokens, each after all before it, in nats; BOS isn't predicted.

        >>> model.loss("return self.colour", off=["L0H0"], replace="mean")

        Raises:
            UserError: as `attention` does, or the text has too few tokens for one to be predicted.
        """
        ids = self.encode(text)
        if ids.shape[1] < 2:
            raise UserError("a loss needs a token after the first, got one token. Give a longer text.")
        log_probabilities = self._run(ids, off, replace).logits[0, :-1].log_softmax(-1)
        return -log_probabilities.gather(1, ids[0, 1:, None]).mean().item()

    def generate(
        self,
        text: str,
        n: int = 20,
        seed: int = 0,
        temperature: float = 1.0,
        off: Sequence[str] = (),
        replace: str = "zero",
    ) -> str:
        """A text and n tokens that the model goes on with, drawn by seed; at temperature 0, the likeliest ones.

        The model reads the last n_ctx tokens of what is there.

        >>> model.generate("def ", n=30, seed=1)

        Raises:
            UserError: as `attention` does.
        """
        generator = torch.Generator().manual_seed(seed)
        ids, n_ctx, own = self.encode(text), self.module.architecture.n_ctx, list[int]()
        for _ in range(n):
            logits = self._run(ids[:, -n_ctx:], off, replace).logits[0, -1]
            if self.bos != NO_BOS:
                logits[self.bos] = float("-inf")
            chances = (logits / temperature).softmax(-1) if temperature > 0 else None
            token = logits.argmax() if chances is None else torch.multinomial(chances, 1, generator=generator)[0]
            own.append(int(token))
            ids = torch.cat([ids, token.reshape(1, 1)], 1)
        return text + self._tokens.tokenizer.decode(own, skip_special_tokens=False)

    def logit_lens(self, text: str, n: int = 1) -> pd.DataFrame:
        """The n likeliest next tokens after each token of a text, if the model ended before each of its layers.

        A row for each token of the text, a column for the stream before each layer (R0, R1, ...) and at the end.
        Source: nostalgebraist 2020, interpreting GPT: the logit lens.

        >>> model.logit_lens("return self.colour")

        Raises:
            UserError: as `attention` does.
        """
        ids = self.encode(text)
        traced, module = self._run(ids, (), "zero"), self.module
        streams = [layer.residual_in for layer in traced.layers]
        logits = [*(module.unembed(module.final_norm(stream)) for stream in streams), traced.logits]
        read = {f"R{i}": own[0].topk(n).indices.tolist() for i, own in enumerate(logits)}
        names = [f"{place} {token}" for place, token in enumerate(self.tokens(text))]
        told = {column: [" ".join(self.vocabulary[i] for i in row) for row in rows] for column, rows in read.items()}
        return pd.DataFrame(told, index=names)

    def _run(self, ids: Int[Tensor, "1 pos"], off: Sequence[str], replace: str) -> Trace:
        from headstream.switched_off import masked

        with torch.no_grad():
            return self.module.trace(ids, *masked(self.module, self._tokens, ids.shape[1], off, replace))

    def trace(self, text: str, off: Sequence[str] = (), replace: str = "zero") -> NamedTensors:
        """Everything that a forward pass over a text computes, by name, with heads switched off if wanted.

        `embedding` [pos, d_model]; for each layer, here L0: `L0.residual_in` [pos, d_model], `L0.pattern` [head, query,
        key], `L0.z` [head, pos, d_value], `L0.head_outputs` [head, pos, d_model], `L0.attention_out`,
        `L0.feed_forward_out` (if there is one) and `L0.residual_out` [pos, d_model], `L0.gates` [head, pos] (if there
        are any); `residual_final` [pos, d_model], after the final norm; `logits` [pos, d_vocab].

        Raises:
            UserError: it isn't text, or is longer than the model's context.
        """
        traced = self._run(self.encode(text), off, replace)
        parts = ("residual_in", "pattern", "gates", "z", "head_outputs", "attention_out", "feed_forward_out")
        named: dict[str, Tensor | None] = {"embedding": traced.embedding}
        for i, layer in enumerate(traced.layers):
            named |= {f"L{i}.{part}": getattr(layer, part) for part in (*parts, "residual_out")}
        named |= {"residual_final": traced.residual_final, "logits": traced.logits}
        return NamedTensors(self.tokens(text), {name: each[0] for name, each in named.items() if each is not None})

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

        >>> model.patch("f(a[1", "f[a(1", "]", ")").head()

        A node's effect is what is lost if it writes what it writes at the corrupt prompt; restored is what it alone
        brings back there; shares are of the whole difference between the prompts.

        Raises:
            UserError: the prompts have different numbers of tokens, or an answer merges with their ends.
        """
        from headstream.asked_model import patch

        return patch(self.module, self._tokens, clean, corrupt, answer, wrong)

    def __repr__(self) -> str:
        a = self.module.architecture
        heads = f"{counted(sum(a.heads_per_layer), 'head')} in {counted(a.n_layers, 'layer')}"
        after = "" if self.tokens_seen is None else f" after {short_count(self.tokens_seen)} tokens"
        return (
            f"Model {self.label} ({self.model_id}){after}, step {self.step} of {self.steps[-1]}: {heads}, d_model"
            f" {a.d_model}, n_ctx {a.n_ctx}, vocabulary {self.module.d_vocab}"
        )
