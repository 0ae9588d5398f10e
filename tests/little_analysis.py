"""Every stage of the analysis on as little text as it takes."""

from headstream.tasks.study.analyses import ANALYSES
from headstream.tasks.study.analysis_config import AnalysisConfig

CONFIG = AnalysisConfig.model_validate({stage.section: stage.trial_fields for stage in ANALYSES.values()})
SHORTER_CURVES = CONFIG.model_copy(
    update={"pruning": CONFIG.pruning.model_copy(update={"max_points": 2, "keep": ("half",)})}
)
