"""Text that models are measured on, and other text for references."""

import torch
from tiny import tiny_tokens

from tasks.text.token_reading import Tokens
from tasks.text.windows import evaluation_text, reference_text


def test_evaluation_and_reference_text_have_no_token_in_common():
    tokens = Tokens.open(tiny_tokens())
    n, half = 16, len(tokens.validation) // 2
    stream = torch.from_numpy(tokens.validation.read(0, len(tokens.validation)).astype("int64"))
    evaluation, reference = evaluation_text(tokens, n, 10_000), reference_text(tokens, n, 10_000)
    assert len(evaluation) == len(reference) == half // n
    assert (evaluation[:, 0] == tokens.bos).all()
    assert torch.equal(evaluation[0, 1:], stream[:n])
    windows = half // n
    last = (windows - 1) * half // windows
    assert last + n <= half
    assert torch.equal(evaluation[-1, 1:], stream[last : last + n])
    assert torch.equal(reference[0, 1:], stream[half : half + n])


def test_few_windows_are_spread_over_their_part():
    tokens = Tokens.open(tiny_tokens())
    assert evaluation_text(tokens, 16, 4).shape == reference_text(tokens, 16, 4).shape == (4, 17)
    assert not torch.equal(evaluation_text(tokens, 16, 4), reference_text(tokens, 16, 4))
