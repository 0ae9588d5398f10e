"""Scores from one backward pass per batch: the first-order change of the loss if a head's output faded.

All use the same slopes (`loss_slopes`). The sources add up losses and divide by the number of tokens, which is
equivalent. They differ in what is summed before taking absolute values.
Source: Michel et al. 2019, section 4.1 (`michel_paper`) and its BERT code, examples/pruning.py (`michel_code`);
Hugging Face transformers, run_bertology.py (`hf_bertology`); Molchanov et al. 2017, Taylor expansion.
"""

import torch

from headstream.models.heads.scoring_inputs import HeadScores, ScoringInputs

BERTOLOGY_BATCH = 8  # sequences whose gradients are summed before the absolute value


def michel_paper(inputs: ScoringInputs) -> HeadScores:
    """Importance as defined by Michel et al.: mean over sequences of |sum over positions of slopes|, nats per token."""
    return [slopes.sum(2).abs().mean(0) for slopes in inputs.slopes]


def michel_code(inputs: ScoringInputs) -> HeadScores:
    """Importance as in their code: mean over sequences of the sum over positions of |slope|, nats per token."""
    return [slopes.abs().sum(2).mean(0) for slopes in inputs.slopes]


def hf_bertology(inputs: ScoringInputs) -> HeadScores:
    """Importance as in run_bertology: |sum of slopes over a batch of sequences|, nats per token.

    Each batch starts from zero gradients. The script forgets to clear them, so its later batches include the earlier.
    """
    by_batch = [slopes.sum(2).split(BERTOLOGY_BATCH) for slopes in inputs.slopes]
    n = len(inputs.text)
    return [torch.stack([batch.sum(0).abs() for batch in layer]).sum(0) / n for layer in by_batch]


def taylor_signed(inputs: ScoringInputs) -> HeadScores:
    """Rise of the loss that slopes predict if z became zero, nats per token: negative = better without the head."""
    return [-slopes.sum(2).mean(0) for slopes in inputs.slopes]
