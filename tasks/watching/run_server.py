"""Serves an explorer, and runs for it the models that are too large for a page; to browsers on this machine alone."""

import base64
import json
import secrets
from collections.abc import Mapping
from functools import lru_cache
from threading import Lock
from typing import Any

import torch

from headstream.models.heads.head import heads_of
from headstream.models.transformer import HeadMask, Transformer
from headstream.tasks.errors import UserError
from headstream.tasks.report.explorer.kept_runs import kept_run
from headstream.tasks.report.explorer.model_files import ModelFiles
from headstream.tasks.training.checkpoints import checkpoint_steps, load_model
from headstream.tasks.watching.page_server import PageHandler, PageServer

MAX_REQUEST_BYTES = 1_000_000
KEPT_MODELS = 2  # in memory


class RunServer(PageServer):
    """Serves one page at an address that holds a secret, and what models do on the texts that it asks about."""

    def __init__(self, port: int, page: bytes, files: Mapping[str, ModelFiles]) -> None:
        super().__init__(port, _Handler)
        self.page = page
        self.secret = secrets.token_urlsafe(16)
        self._files, self._one_at_a_time = files, Lock()
        self._load = lru_cache(KEPT_MODELS)(load_model)

    @property
    def address(self) -> str:
        """The page's address for browsers; whoever doesn't know its secret gets nothing."""
        return f"{super().address}{self.secret}/"

    def run(self, asked: Any) -> dict[str, Any]:
        """What a model does on tokens: as a page keeps it, its attention in base64.

        Raises:
            UserError: there is no such model, checkpoint, token or head.
        """
        match asked:
            case {"model": str(model_id), "step": int(step), "tokens": list(tokens), "off": list(off)}:
                pass
            case _:
                raise UserError("a run must be asked for by model, step, tokens and off.")
        files = self._files.get(model_id)
        if files is None or step not in checkpoint_steps(files.checkpoints):
            raise UserError(f"there are no weights of {model_id!r:.100} at step {step}.")
        with self._one_at_a_time, torch.no_grad():
            model: Transformer = self._load(files.checkpoints, step)
            _require_tokens(model, tokens)
            facts, packed = kept_run(model, tokens, _mask(model, off))
        return facts | {"attention": base64.b64encode(packed).decode()}


class _Handler(PageHandler):
    server: RunServer

    def do_GET(self) -> None:
        if not self.is_for_this_machine():
            return
        if self._place() == "":
            self.answer(200, self.server.page, "text/html; charset=utf-8")
        else:
            self.answer(404, b"There is one page, at the address that was printed.", "text/plain")

    def do_POST(self) -> None:
        if not self.is_for_this_machine():
            return
        size = self.headers.get("Content-Length") or ""
        if self._place() != "run" or not size.isdecimal() or int(size) > MAX_REQUEST_BYTES:
            self.answer(404, b"Runs are asked for at run, in up to a megabyte.", "text/plain")
            return
        try:
            answer = self.server.run(json.loads(self.rfile.read(int(size))))
        except (ValueError, RecursionError, UserError) as error:
            self.answer(400, str(error).encode(), "text/plain; charset=utf-8")
            return
        self.answer(200, json.dumps(answer).encode(), "application/json")

    def _place(self) -> str | None:
        """The part of the address after its secret; None if that is another."""
        _, given, *rest = [*self.path.split("/"), ""]
        known = secrets.compare_digest(given.encode(), self.server.secret.encode())
        return "/".join(rest).removesuffix("/") if known and rest else None


def _require_tokens(model: Transformer, tokens: list[Any]) -> None:
    known = all(isinstance(token, int) and 0 <= token < model.d_vocab for token in tokens)
    if not known or not 0 < len(tokens) <= model.architecture.n_ctx:
        raise UserError(f"tokens must be 1 to {model.architecture.n_ctx} whole numbers from 0 to {model.d_vocab - 1}.")


def _mask(model: Transformer, off: list[Any]) -> HeadMask | None:
    """A mask of the heads that are off, whose outputs are then zero."""
    if not off:
        return None
    known = {str(head): head for head in heads_of(model)}
    mask = [torch.ones(n_heads) for n_heads in model.architecture.heads_per_layer]
    for name in off:
        if not isinstance(name, str) or name not in known:
            raise UserError(f"there is no head {name!r:.100}.")
        layer, head = known[name]
        mask[layer][head] = 0
    return mask
