"""The certificate of an import: that a model was read as it was meant, proved before anything is measured on it."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch

from headstream.models.transformer import Transformer
from headstream.tasks.errors import WorkError
from headstream.tasks.importing.foreign_model import ForeignModel
from headstream.tasks.importing.import_check import ImportCheck
from headstream.tasks.importing.reference.forward import reference_logits, without_reference
from headstream.tasks.importing.text_checks import continuation, loss_checks, tokenizer_checks
from headstream.tasks.text.token_reading import Tokens

PARITY_BAR = 1e-4  # of the logits' standard deviation, in float32
PARITY_SEQUENCES, PARITY_TOKENS = 2, 64


@torch.inference_mode()
def certify(
    name: str,
    model: Transformer,
    foreign: ForeignModel,
    tokens: Tokens,
    texts: Sequence[str],
    *,
    prompt: str | None = None,
    untrained: bool = False,
) -> list[dict[str, Any]]:
    """Rows of the table `certificates` but for model and step: of a model in float32, on validation texts.

    `name` is what it is called in errors. One told to be untrained needn't predict better than token counts do.

    Raises:
        WorkError: it isn't fit to be measured; says by which check.
    """
    checks = [
        _finite(model),
        _parity(model, foreign, tokens),
        *tokenizer_checks(tokens.tokenizer, texts),
        *loss_checks(model, tokens, texts, untrained=untrained),
        continuation(model, tokens, texts, prompt),
    ]
    if failed := next((check for check in checks if check.passed is False), None):
        raise WorkError(f"{name}: {_failure(failed)}")
    return [asdict(check) | {"passed": check.passed} for check in checks]


def _finite(model: Transformer) -> ImportCheck:
    n = sum(int((~parameter.isfinite()).sum()) for parameter in model.parameters())
    return ImportCheck("finite", n, "weights that are infinite or no numbers", bar=0)


def _parity(model: Transformer, foreign: ForeignModel, tokens: Tokens) -> ImportCheck:
    if reason := without_reference(foreign):
        return ImportCheck("parity", None, f"not checked: no forward pass of our own is written for {reason}")
    length = min(model.architecture.n_ctx, PARITY_TOKENS, len(tokens.validation))
    ids = torch.from_numpy(tokens.validation.spread_windows(PARITY_SEQUENCES, length))
    expected = reference_logits(foreign, ids)
    difference = float((model(ids).double() - expected).abs().max() / expected.std())
    detail = (
        f"largest difference of logits over their standard deviation, {len(ids)} sequences of {length} tokens, to a"
        f" forward pass in float64 written from the definition of {foreign.format}"
    )
    return ImportCheck("parity", difference, detail, PARITY_BAR)


def _failure(check: ImportCheck) -> str:
    match check.checked:
        case "finite":
            return f"weights must be finite, got {check.value:,.0f} that aren't. Give another checkpoint."
        case "parity":
            return (
                f"logits must be within {check.bar:.0e} of their standard deviation of those that the file's format"
                f" defines, got {check.value:.1e}. Headstream reads it wrong: please report what `headstream inspect`"
                " says of it."
            )
    return (
        f"the loss on the corpus must be below that of token counts, {check.bar:.3g} nats per token, got"
        f" {check.value:.3g}: the corpus is of another kind than the model, the tokenizer isn't its own, or it isn't"
        " trained. Correct the first two, or set untrained = true."
    )
