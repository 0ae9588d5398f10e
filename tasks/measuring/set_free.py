"""Models set free: their losses and heads at each checkpoint without the interventions that act on them there."""

from typing import Any

from headstream.models.heads.head_behaviour import Behaviour, model_behaviour
from headstream.tasks.measuring.sequences import RepeatCounts, build_stimuli
from headstream.tasks.measuring.trained_model import TrainedModel
from headstream.tasks.results.tables import write_table
from headstream.tasks.study.analyses.behaviour_config import BehaviourConfig
from headstream.tasks.study.analyses.set_free_config import SetFreeConfig
from headstream.tasks.training.checkpoints import is_intervened, tokens_at

LOSSES = ("validation_loss_nats", "repeat_gain_nats")


def measure_set_free(config: SetFreeConfig, trained: TrainedModel) -> None:
    """Write losses, and induction scores of every head, at each checkpoint where something is done to the model.

    Cost: a few passes of all texts at each such checkpoint.

    Raises:
        UserError: the validation text is too short for one sequence.
    """
    fixed_period = BehaviourConfig().fixed_period_sequences  # so that the others are those of `behaviour`
    stimuli = build_stimuli(
        trained.tokens,
        trained.model.architecture.n_ctx,
        windows=config.loss_windows,
        pattern_windows=1,
        repeats=RepeatCounts(fixed_period, config.random_period_sequences, config.seed),
    )
    steps = [step for step in trained.steps if is_intervened(trained.training_folder, step)]
    tokens, losses, heads = tokens_at(trained.training_folder), list[dict[str, Any]](), list[dict[str, Any]]()
    for done, step in enumerate(steps, 1):
        behaviour = model_behaviour(trained.at(step, set_free=True), stimuli)
        measured = behaviour.text | behaviour.repeats
        losses.append({"step": step, "tokens": tokens[step], **{name: measured[name] for name in LOSSES}})
        heads += _head_rows(step, behaviour)
        trained.on_progress(done / len(steps))
    trained.write("set_free", losses)
    write_table(trained.folder, "set_free_heads", [{"model_id": trained.model_id, **row} for row in heads])


def _head_rows(step: int, behaviour: Behaviour) -> list[dict[str, Any]]:
    return [
        {"step": step, "layer": layer, "head": head, "induction_random_period": score}
        for layer, scores in enumerate(behaviour.layers)
        for head, score in enumerate(scores["induction_random_period"].tolist())
    ]
