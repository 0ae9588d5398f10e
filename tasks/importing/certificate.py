"""The certificate of an import: proof that a model was read correctly, made before anything is measured on it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import torch
from jaxtyping import Float64, Int
from torch import Tensor

from headstream.models.transformer import Transformer
from headstream.tasks.errors import WorkError
from headstream.tasks.importing.foreign_model import ForeignModel
from headstream.tasks.importing.import_check import ImportCheck
from headstream.tasks.importing.reference.forward import reference_logits, without_reference
from headstream.tasks.importing.reference.said_settings import UndefinedSettingError
from headstream.tasks.importing.text_checks import continuation, loss_checks, tokenizer_checks
from headstream.tasks.text.token_reading import Tokens

PARITY_BAR = 1e-6  # of the logits' standard deviation; in float64, sharp attention multiplies rounding to 1e-12 or so
PARITY_SEQUENCES, PARITY_TOKENS = 2, 64


class TriedOn(NamedTuple):
    """What a model is checked on."""

    tokens: Tokens
    texts: Sequence[str]  # for validation
    prompt: str | None = None  # to be continued; None: the beginning of a text


@torch.no_grad()
def certify(
    model: Transformer,
    foreign: ForeignModel,
    tried_on: TriedOn,
    *,
    untrained: bool = False,
    on_progress: Callable[[float], None] = lambda fraction: None,
) -> list[dict[str, Any]]:
    """Check a model: rows of the table `certificates`, without model and step.

    All is computed in float32 but the logits that must be those of the second reading. An `untrained` model needn't
    predict better than token counts do.

    Raises:
        WorkError: it failed a check, which the message names.
    """
    tokens, texts, prompt = tried_on
    parts: list[Callable[[], Iterable[ImportCheck]]] = [
        lambda: [_finite(model), _parity(model, foreign, tokens)],
        lambda: tokenizer_checks(tokens.tokenizer, texts),
        lambda: loss_checks(model, tokens, texts, untrained=untrained),
        lambda: [continuation(model, tokens, texts, prompt)],
    ]
    checks: list[ImportCheck] = []
    for i, part in enumerate(parts, 1):
        checks += part()
        on_progress(i / len(parts))
    for check in checks:
        if check.passed is False:
            raise WorkError(f"certificate: {_failure(check)}")
    return [asdict(check) | {"passed": check.passed} for check in checks]


def _finite(model: Transformer) -> ImportCheck:
    n = sum(int((~parameter.isfinite()).sum()) for parameter in model.parameters())
    return ImportCheck("finite", n, "weights that are infinite or not numbers", bar=0)


def _parity(model: Transformer, foreign: ForeignModel, tokens: Tokens) -> ImportCheck:
    reason = without_reference(foreign)
    if reason:
        return ImportCheck("parity", None, f"not checked: there is no reference forward pass for {reason}")
    length = min(model.architecture.n_ctx, PARITY_TOKENS, len(tokens.validation))
    ids = torch.from_numpy(tokens.validation.spread_windows(PARITY_SEQUENCES, length))
    try:
        expected = reference_logits(foreign, ids)
    except UndefinedSettingError as undefined:
        raise WorkError(
            f"certificate: the file says {undefined}, which Headstream passed over. {_PLEASE_REPORT}"
        ) from undefined
    difference = float((logits_in_float64(model, ids) - expected).abs().max() / expected.std())
    detail = (
        f"largest difference of logits in float64 over their standard deviation, on {len(ids)} sequences of {length}"
        f" tokens, from a second forward pass that is written from the definition of {foreign.format}"
    )
    return ImportCheck("parity", difference, detail, PARITY_BAR)


def logits_in_float64(model: Transformer, ids: Int[Tensor, "batch pos"]) -> Float64[Tensor, "batch pos d_vocab"]:
    """Logits computed in float64, by a float32 model of which one layer at a time is widened; all come back exactly."""
    around_layers = [parameter for name, parameter in model.named_parameters() if not name.startswith("layers.")]
    for parameter in around_layers:
        parameter.data = parameter.data.double()
    x = model.embed(ids)
    for layer in model.layers:
        x = layer.double()(x)
        layer.float()
    logits = model.unembed(model.final_norm(x))
    for parameter in around_layers:
        parameter.data = parameter.data.float()
    return logits


_PLEASE_REPORT = "Please report it, with what `headstream inspect` says about the file."


def _failure(check: ImportCheck) -> str:
    match check.checked:
        case "finite":
            return f"{check.value:,.0f} weights are infinite or not numbers. Give another checkpoint."
        case "parity":
            return (
                f"logits differ by {check.value:.1e} of their standard deviation from those that the file's format"
                f" defines; at most {check.bar:.0e} is allowed. Headstream misreads the file. {_PLEASE_REPORT}"
            )
    return (
        f"the loss on the corpus is {check.value:.3g} nats per token, no better than that of token counts,"
        f" {check.bar:.3g}: the corpus is unlike the model's text, the tokenizer isn't its own, or it isn't trained."
        " Correct the first two, or set untrained = true."
    )
