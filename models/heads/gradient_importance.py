"""Scores from one backward pass a batch: what the loss would do, to first order, if a head's output faded.

All come from the same slopes (`loss_slopes`). Sources add up losses and divide by the number of tokens, which is the
same. They differ in what is summed before the sign is dropped.
Source: Michel et al. 2019, section 4.1 (`michel_paper`) and its BERT code, examples/pruning.py (`michel_code`);
Hugging Face transformers, run_bertology.py (`hf_bertology`); Molchanov et al. 2017, Taylor expansion.
"""

import torch

from headstream.models.heads.evidence import Evidence, HeadScores

BERTOLOGY_BATCH = 8  # sequences whose gradients are summed before the sign is dropped


def michel_paper(evidence: Evidence) -> HeadScores:
    """Importance as Michel et al. define it: mean over sequences of |sum over positions of slopes|, nats per token."""
    return [slopes.sum(2).abs().mean(0) for slopes in evidence.slopes]


def michel_code(evidence: Evidence) -> HeadScores:
    """Importance as their code has it: mean over sequences of the sum over positions of |slope|, nats per token."""
    return [slopes.abs().sum(2).mean(0) for slopes in evidence.slopes]


def hf_bertology(evidence: Evidence) -> HeadScores:
    """Importance as run_bertology has it: |sum of slopes over a batch of sequences|, nats per token.

    Each batch starts from gradients of zero. The script forgets to clear them, so its later batches count its earlier.
    """
    by_batch = [slopes.sum(2).split(BERTOLOGY_BATCH) for slopes in evidence.slopes]
    n = len(evidence.text)
    return [torch.stack([batch.sum(0).abs() for batch in layer]).sum(0) / n for layer in by_batch]


def taylor_signed(evidence: Evidence) -> HeadScores:
    """Rise of the loss that slopes promise if z became zero, nats per token: negative = better without the head."""
    return [-slopes.sum(2).mean(0) for slopes in evidence.slopes]
