"""What content earns: against a slow reference, and nothing for heads that look at places alone."""

import pytest
import torch
from planted import BOS, induction_model, only_places

from headstream.models.heads.attended_keys import duplicate_token_keys, induction_keys
from headstream.models.heads.content_attention import ContentAttention
from headstream.models.heads.head_behaviour import model_behaviour
from headstream.models.repeats import fixed_period_repeats, random_period_repeats
from headstream.models.stimuli import Stimuli

D_VOCAB = 43


def stimuli_of(n_ctx):
    generator = torch.Generator().manual_seed(0)
    counts = torch.ones(D_VOCAB, dtype=torch.int64)
    text = torch.randint(1, 9, (8, n_ctx + 1), generator=generator)
    text[:, 0] = BOS
    fixed, random = (
        draw(counts, BOS, n_ctx, n, generator) for draw, n in ((fixed_period_repeats, 4), (random_period_repeats, 64))
    )
    return Stimuli(BOS, text, text[:0], fixed, random, torch.arange(8))


@pytest.mark.parametrize("n_ctx", [8, 16, 24])
def test_no_offset_and_no_position_earns_anything(n_ctx):
    (scores,) = model_behaviour(only_places(D_VOCAB, n_ctx), stimuli_of(n_ctx)).layers
    for name in ("induction_random_period", "induction_natural", "duplicate_token"):
        assert scores[name].abs().max() < 1e-5, name
    if n_ctx > 8:  # where it fits, one period lets an offset earn something
        assert scores["prefix_matching"].max() > 0.5


@pytest.mark.parametrize("n_ctx", [8, 16, 24])
def test_induction_earns_everything_however_short_the_context(n_ctx):
    scores = model_behaviour(induction_model(D_VOCAB, n_ctx), stimuli_of(n_ctx)).layers[1]
    assert scores["induction_random_period"][1] > 0.99


def random_patterns(n_sequences=6, n_heads=3, n=7):
    generator = torch.Generator().manual_seed(1)
    scores = torch.randn(n_sequences, n_heads, n, n, generator=generator)
    tokens = torch.randint(0, 4, (n_sequences, n), generator=generator)
    return scores.masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf).softmax(-1), tokens


def slow_score(pattern, keys):
    """Of one head, query by query, with the patterns of the other sequences in which the query counts."""
    gained = most = 0.0
    for s in range(len(pattern)):
        for q in range(pattern.shape[1]):
            others = [other for other in range(len(pattern)) if other != s and keys[other, q].any()]
            if not keys[s, q].any() or not others:
                continue
            own = pattern[s, q][keys[s, q]].sum().item()
            by_place = sum(pattern[other, q][keys[s, q]].sum().item() for other in others) / len(others)
            gained, most = gained + own - by_place, most + 1 - by_place
    return gained / most


@pytest.mark.parametrize("keys_of", [induction_keys, duplicate_token_keys])
def test_scores_are_those_of_a_slow_reference(keys_of):
    pattern, tokens = random_patterns()
    keys = keys_of(tokens, BOS)
    content = ContentAttention()
    for some in (slice(0, 2), slice(2, 6)):
        content.add(pattern[some], keys[some])
    score = content.score()
    for head in range(3):
        assert score.mean[head].item() == pytest.approx(slow_score(pattern[:, head], keys), abs=1e-6)
    assert score.parts.sum(1).abs().max() < 1e-6


def test_one_sequence_tells_nothing():
    pattern, tokens = random_patterns(1)
    content = ContentAttention()
    content.add(pattern, duplicate_token_keys(tokens, BOS))
    assert content.score().mean.isnan().all()
    with pytest.raises(ValueError, match="no sequences"):
        ContentAttention().score()
