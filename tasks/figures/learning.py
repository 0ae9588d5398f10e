"""Figures of what training does: losses, and what context is worth, over tokens."""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tasks.figures.style import MUTED, WIDTH, Palette, Picture, scale_by_tokens
from tasks.markdown import compact, readable
from tasks.study_results import StudyResults

MAX_TRAINING_CURVES = 12  # more would hide the validation losses


def learning_curves(results: StudyResults, palette: Palette) -> list[Picture]:
    """Training and validation loss of every model over tokens, the phase change marked."""
    name, queries = "learning_curves", ("learning_curves", "phase_changes")
    curves = results.frame("learning_curves")
    validation = curves[curves.split == "validation"]
    if validation.empty:
        return [Picture(name, "Losses over tokens are missing.", queries)]
    figure = Figure(figsize=(WIDTH, 3.8), layout="constrained")
    axes = figure.subplots()
    few = curves.model_id.nunique() <= MAX_TRAINING_CURVES
    for (label, split, _), curve in curves.groupby(["label", "split", "model_id"]):
        style = palette.line(label)
        if split == "validation":
            axes.plot(curve.tokens, curve.loss_nats, marker="o", **style)
        elif few:
            axes.plot(curve.tokens, curve.loss_nats, **style | {"linewidth": 0.9, "alpha": 0.6})
    drawn = "dots: validation, thin lines: training" if few else "validation; too many models to add training"
    axes.set_title(f"loss, nats per token ({drawn})")
    scale_by_tokens(axes)
    change = strongest_change(results, "prefix_matching") or strongest_change(results, "repeat_gain_nats")
    mark(axes, change)
    palette.legend(figure)
    ...
