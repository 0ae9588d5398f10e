"""Every method of scoring the importance of heads, by name."""

from collections.abc import Callable, Mapping

import torch

from headstream.models.heads.ablation_importance import ablation_mean, ablation_resample, ablation_zero
from headstream.models.heads.gradient_importance import hf_bertology, michel_code, michel_paper, taylor_signed
from headstream.models.heads.pattern_importance import attention_variance, confidence
from headstream.models.heads.relevance import lrp
from headstream.models.heads.scoring_inputs import HeadScores, ScoringInputs
from headstream.models.heads.weight_norms import qkv_norm, weight_norm

METHODS: Mapping[str, Callable[[ScoringInputs], HeadScores]] = {
    "michel_paper": michel_paper,
    "michel_code": michel_code,
    "hf_bertology": hf_bertology,
    "taylor_signed": taylor_signed,
    "weight_norm": weight_norm,
    "qkv_norm": qkv_norm,
    "attention_variance": attention_variance,
    "confidence": confidence,
    "ablation_zero": ablation_zero,
    "ablation_mean": ablation_mean,
    "ablation_resample": ablation_resample,
    "lrp": lrp,
}


def head_scores(method: str, inputs: ScoringInputs) -> HeadScores:
    """Each head's score by a method of `METHODS`, high = matters; NaN for pruned heads, and where it is undefined."""
    scores = METHODS[method](inputs)
    if inputs.head_mask is None:
        return scores
    kept = [mask.cpu() > 0 for mask in inputs.head_mask]
    return [score.where(own, torch.nan) for score, own in zip(scores, kept, strict=True)]


def normalise(scores: HeadScores) -> HeadScores:
    """Scores divided by the norm of their layer's scores, ignoring NaN; NaN in a layer of zeros.

    Source: Michel et al. 2019, section 4.1.
    """
    return [score / score.square().nansum().sqrt() for score in scores]
