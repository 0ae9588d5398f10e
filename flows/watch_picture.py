"""The live picture of a running study: its progress and, for models in work, losses and best heads so far."""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import log

from rich.console import Console, Group, RenderableType
from rich.text import Text

from headstream.flows.progress_display import model_lines, other_models, summary_lines
from headstream.flows.study_progress import ModelProgress, StudyProgress
from headstream.tasks.watching.models_so_far import LossCurve, ScoresSoFar
from headstream.tasks.words.markdown import short_count

BLOCKS = " ▁▂▃▄▅▆▇█"
CURVE_MARGIN = 8  # columns before a curve
NOT_MEASURED_YET = "  no checkpoint measured yet"
MIN_WIDTH = 40  # of a terminal, for curves
MAX_CURVE_ROWS = 6  # of a curve
_OTHER_LINES = 6  # the study's own, wrapped ones, and the summary of other models


def watch_picture(
    study: StudyProgress, losses: Callable[[str], LossCurve], scores: Mapping[str, ScoresSoFar], console: Console
) -> Group:
    """The study's lines, a line for each model in work and, as far as they fit, what the model has learned so far."""
    room = max(1, console.height - _OTHER_LINES)
    shown = study.in_state("in work")[:room]
    per_model = room // max(1, len(shown))
    parts: list[RenderableType] = summary_lines(study)
    for model in shown:
        parts += [model_lines([model], console), *_learned(model, losses, scores, console.width, per_model - 1)]
    failed = [model.name for model in study.in_state("failed")]
    if failed:
        parts.append(Text(f"failed: {', '.join(failed)}", style="red", no_wrap=True, overflow="ellipsis"))
    return Group(*parts, *other_models(study, len(shown)))


def _learned(
    model: ModelProgress, losses: Callable[[str], LossCurve], scores: Mapping[str, ScoresSoFar], width: int, room: int
) -> list[Text]:
    measured = scores.get(model.name)
    unmeasured = [NOT_MEASURED_YET] if model.phase == "training" else []
    found = score_lines(measured) if measured else unmeasured
    if len(found) > room:
        return []
    rows = min(MAX_CURVE_ROWS, room - len(found) - 2)  # besides an axis, and a line between models
    curve = loss_curve(losses(model.name), width - CURVE_MARGIN, rows) if rows > 1 and width >= MIN_WIDTH else []
    lines = [Text(line, no_wrap=True, overflow="ellipsis") for line in (*curve, *found)]
    return [*lines, Text("")] if len(lines) < room else lines


def score_lines(scores: ScoresSoFar) -> list[str]:
    """Lines on a model's checkpoints: validation losses, and the heads that score highest at the last one."""
    bars = _bars([nats for _, nats in scores.validation])
    heads = [f"  {name:<15} {heads}" for name, heads in _best_heads(scores, "  ").items()]
    return [f"  {'validation loss':<15} {_validation(scores)} {bars}", *heads]


def scores_in_words(scores: ScoresSoFar) -> str:
    """The last measured checkpoint in words: its validation loss, and the heads that score highest."""
    heads = [f"{name} {heads}" for name, heads in _best_heads(scores, ", ").items()]
    return "; ".join([f"validation loss {_validation(scores)}", *heads])


def _validation(scores: ScoresSoFar) -> str:
    if not scores.validation:
        return "not known"
    tokens, nats = scores.validation[-1]
    sem = "" if scores.sem is None else f" ± {scores.sem:.3f}"
    preliminary = f", preliminary ({scores.n_windows} sequences)" if scores.preliminary else ""
    return f"{nats:.3f}{sem} nats after {short_count(tokens)} tokens{preliminary}"


def _best_heads(scores: ScoresSoFar, between: str) -> dict[str, str]:
    words = {name: [f"{head} {value:.2f}" for head, value in heads] for name, heads in scores.best.items()}
    return {name: between.join(heads) for name, heads in words.items() if heads}


def loss_curve(losses: LossCurve, width: int, height: int) -> list[str]:
    """A plot of losses over tokens: `height` rows from the lowest to the highest, above a logarithmic axis."""
    if len(losses) < 2 or losses[0][0] <= 0:
        return []
    nats = _resampled(losses, width)
    low, high = min(nats), max(nats)
    levels = [1 + round((8 * height - 1) * (loss - low) / ((high - low) or 1.0)) for loss in nats]
    rows = [_row_of_blocks(levels, row) for row in reversed(range(height))]
    labels = [f"{high:7.3f} ", *[" " * CURVE_MARGIN] * (height - 2), f"{low:7.3f} "]
    first, last = (f"{short_count(losses[place][0])} tokens" for place in (0, -1))
    title = "training loss, nats" if width > len(first) + len(last) + 30 else ""
    axis = f"{' ' * CURVE_MARGIN}{first}{title.center(width - len(first) - len(last))}{last}"
    return [*(label + row for label, row in zip(labels, rows, strict=True)), axis]


def _row_of_blocks(levels: Sequence[int], row: int) -> str:
    """A row of an area plot whose columns reach levels, in eighths of a row; row 0 is the lowest."""
    return "".join(BLOCKS[min(8, max(0, level - 8 * row))] for level in levels)


def _resampled(losses: LossCurve, width: int) -> list[float]:
    """Mean losses in `width` bins, evenly spaced in ln(tokens); a bin without losses repeats the one before."""
    tokens = [log(n) for n, _ in losses]
    edges = [tokens[0] + (tokens[-1] - tokens[0]) * place / width for place in range(1, width)]
    ends = [0, *(bisect_right(tokens, edge) for edge in edges), len(tokens)]
    means: list[float] = []
    for start, end in pairwise(ends):
        inside = [loss for _, loss in losses[start:end]]
        means.append(sum(inside) / len(inside) if inside else means[-1])
    return means


def _bars(values: Sequence[float]) -> str:
    low, high = min(values, default=0.0), max(values, default=0.0)
    return "".join(BLOCKS[1 + round(7 * (value - low) / ((high - low) or 1.0))] for value in values)
