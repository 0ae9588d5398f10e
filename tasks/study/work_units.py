"""The work of each stage of [analysis] by its section, in units of its own, by which plans compare budgets."""

from typing import Any

from headstream.tasks.study.stage import Size


def behaviour(config: Any, size: Size) -> float:
    """Sequences read: of text, once more for patterns, and of random tokens."""
    repeats = config.fixed_period_sequences + config.random_period_sequences
    return float(config.loss_windows + config.pattern_windows + repeats)


def weight_circuits(config: Any, size: Size) -> float:
    """Work on weights, most of which no budget changes."""
    return 1 + config.rotations / 50 + config.copying_tokens / 4096 + config.evaluator_sequences / 10


def activation_circuits(config: Any, size: Size) -> float:
    """Sequences read: for bigrams, for pairs of heads and for induction circuits, as many as a model may have."""
    pairs = min(config.max_pairs, size.n_heads**2 // 4)
    circuits = min(config.max_circuits, size.n_heads)
    repeats = config.fixed_period_sequences + config.random_period_sequences
    return config.bigram_windows + pairs * config.path_windows + circuits * repeats


def importance(config: Any, size: Size) -> float:
    """Sequences rerun: those of each head, for each replacement and scope."""
    replaced = sum(config.resamples if each == "resample" else 1 for each in config.replacements)
    windows = size.windows(config.windows, config.max_reruns, size.n_heads)
    return size.n_heads * windows * replaced * len(config.scopes) * (2 if config.others else 1)


def pruning(config: Any, size: Size) -> float:
    """Sequences read by pruned models, by scores that are computed again, and by what is trained."""
    points = min(config.max_points, size.n_heads)
    orders = len(config.methods) + config.random_orders + 2 * len(config.iterative_methods)
    steps = config.gate_steps * len(config.gate_lambdas) + config.retrain_steps * points
    rescored = 3 * config.reference_windows * len(config.iterative_methods) * points
    return config.windows * orders * points + rescored + 3 * config.batch_size * steps


def redundancy(config: Any, size: Size) -> float:
    """Sequences rerun: those of each head, and of each pair."""
    parts = size.n_heads + min(config.max_pairs, size.n_heads**2 // 2)
    return parts * size.windows(config.windows, config.max_reruns, parts)


def probes(config: Any, size: Size) -> float:
    """Tokens read by a solver, over its steps."""
    return float(config.max_steps * (config.train_tokens + config.selection_tokens + config.test_tokens))


def feed_forward(config: Any, size: Size) -> float:
    """Sequences rerun: those of each layer, and of each group of its neurons."""
    parts = size.n_layers * (1 + config.n_groups)
    return parts * size.windows(config.windows, config.max_reruns, parts)
