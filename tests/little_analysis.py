"""Every stage of the analysis on as little text as it takes."""

from pathlib import Path

from headstream.tasks.prompts.prompt_writing import write_prompts
from headstream.tasks.study.analyses import ANALYSES
from headstream.tasks.study.analysis_config import AnalysisConfig

PROMPTS = {"sets": [{"set": "repeats"}]}
CONFIG = AnalysisConfig.model_validate(
    {stage.section: stage.trial_fields for stage in ANALYSES.values()} | {"prompts": PROMPTS}
)
SHORTER_CURVES = CONFIG.model_copy(
    update={"pruning": CONFIG.pruning.model_copy(update={"max_points": 2, "keep": ("half",)})}
)


def inputs_of(stage: str, model: Path, tokens: Path) -> dict[str, Path]:
    """The folders of what a stage reads of a model; prompts are written beside it."""
    others = [role for role in ANALYSES[stage].reads if role not in ("model", "tokens")]
    for role in others:
        (model / role).mkdir(exist_ok=True)
        write_prompts(CONFIG.prompts, model / role, lambda fraction: None)
    return {"model": model, "tokens": tokens, **{role: model / role for role in others}}
