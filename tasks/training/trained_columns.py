"""The columns of `models` that are known of a model before it is trained."""

from headstream.models.architecture import Architecture
from headstream.tasks.results.model_columns import architecture_columns
from headstream.tasks.study.training_config import TrainingConfig
from headstream.tasks.study.training_interventions import in_words
from headstream.tasks.training.training_steps import step_count


def model_columns(architecture: Architecture, config: TrainingConfig) -> dict[str, object]:
    """The columns that its architecture and its training decide."""
    return {
        **architecture_columns(architecture),
        **config.model_dump(exclude={"device", "precision", "compile", "threads"}),
        "interventions": in_words(config.interventions) if config.interventions else None,
        "tokens": step_count(architecture, config) * config.batch_size * architecture.n_ctx,
    }
