"""Every stage of the analysis on as little text as it takes."""

from headstream.tasks.study.analysis_config import AnalysisConfig

WINDOWS = {"windows": 3, "reference_windows": 3}
PRUNING = {"gate_lambdas": (0.1,), "gate_steps": 1, "retrain_steps": 1, "random_orders": 5, "repeats": 1}
CONFIG = AnalysisConfig.model_validate(
    {
        "behaviour": {"loss_windows": 3, "pattern_windows": 2, "random_period_sequences": 2, "passage_tokens": 6},
        "weight_circuits": {"statistics_tokens": 2000, "rotations": 3},
        "activation_circuits": {"path_windows": 2, "bigram_windows": 4},
        "importance": WINDOWS,
        "pruning": WINDOWS | PRUNING,
        "redundancy": WINDOWS,
        "probes": {"train_tokens": 300, "selection_tokens": 200, "test_tokens": 200, "max_steps": 5},
        "feed_forward": WINDOWS,
    }
)
SHORTER_CURVES = CONFIG.model_copy(
    update={"pruning": CONFIG.pruning.model_copy(update={"max_points": 2, "keep": ("half",)})}
)
