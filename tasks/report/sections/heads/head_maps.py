"""All heads at once: their scores after training, and how the induction and previous-token scores rose."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from pandas import DataFrame

from headstream.tasks.report.figures.by_model import MAX_MODELS, FigureOfEachModel, best_models
from headstream.tasks.report.figures.phase_changes import scale_by_tokens, strongest_change
from headstream.tasks.report.figures.score_panels import score_panels
from headstream.tasks.report.figures.style import ROLE_COLORS, WIDTH, wrapped
from headstream.tasks.report.pictures import Picture
from headstream.tasks.report.sentences import models_left_out, risen
from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.words.lists import listed

_MAPS = FigureOfEachModel(
    "head_map",
    ("head_scores",),
    look="Each map shows all heads by one score: the fuller the blue, the higher it is; orange is negative.",
    why_none="no model has heads with scores",
    choose=best_models,
)
_UNIT = "share of attention"
NARROW, DEEP = (
    4,
    8,
)  # heads and layers: of more heads, numbers have room in two maps side by side, unless these are deep
MAX_WITH_ROLE = 8  # heads with a role, each by name
MAX_OF_ROLE = 4  # of more, those of one role
MIN_RISE = 0.1  # that is worth a date
TRAJECTORIES = {"previous_token": "previous token", "induction_random_period": "induction"}  # the role that each is of


def head_maps(results: StudyResults) -> list[Picture]:
    """Each score of each head at the last checkpoint, a map for each of the best kinds of model."""
    heads = results.frame("head_scores")
    scores = [*heads.columns[heads.columns.get_loc("role") + 1 :]]

    def draw(label: str, heads: DataFrame) -> tuple[str, Figure | None]:
        n_columns = 2 if heads["head"].max() > NARROW and heads.layer.max() < DEEP else 4
        measured = {score: score for score in scores if heads[score].notna().any()}  # no BOS, no attention to it
        if not measured:
            return f"No picture: scores of the heads of {label} were not measured.", None
        return _roles(label, heads), score_panels(label, heads, measured, n_columns, _UNIT)

    return _MAPS.pictures(results, heads, draw)


def head_trajectories(results: StudyResults) -> list[Picture]:
    """Induction and previous-token scores of all heads over tokens, those of the heads that end highest stressed."""
    name, queries = "head_trajectories", ("head_trajectories", "phase_changes")
    heads = results.frame(name).dropna(subset=list(TRAJECTORIES))
    shown, n_more = best_models(results, heads.label)
    if not shown:
        return [Picture(name, "No picture: no model has heads with both scores.", queries)]
    figure = Figure((WIDTH, 3.3))
    change = strongest_change(results, "prefix_matching")
    sentences = []
    for axes, label in zip(figure.subplots(1, len(shown), sharey=True, squeeze=False)[0], shown, strict=True):
        sentences.append(_draw_trajectories(axes, label, heads[heads.label == label]))
        scale_by_tokens(axes, change, label)
        axes.set_ylim(0, 1)
        axes.set_ylabel("share of attention" if not axes.get_subplotspec().colspan.start else "")
    lines = [
        Line2D([], [], color=ROLE_COLORS[role], label=f"{score} of the head that ends highest; faint: of the others")
        for score, role in reversed(TRAJECTORIES.items())
    ]
    figure.legend(handles=lines, loc="outside upper left", ncols=1)
    band = f" {change.sentence}" if change and change.label in shown else ""
    look = "When heads take up their jobs: each line is a head, and where it leaps, the head has found what it is for."
    return [Picture(name, f"{sentences[0]}{band}{models_left_out(n_more)}", queries, figure, look)]


def _roles(label: str, heads: DataFrame) -> str:
    """Which heads of a model have a role, in one sentence."""
    with_role = heads[heads.role.notna() & (heads.role != "other")]
    if with_role.empty:
        return f"No head of {label} has a role: no score reaches the threshold of one."
    n = len(with_role)
    if n <= MAX_WITH_ROLE:
        named = [f"{head} ({role})" for head, role in zip(with_role.head_label, with_role.role, strict=True)]
    else:
        named = [_of_role(role, list(own.head_label)) for role, own in with_role.groupby("role")]
    reach = "reaches" if n == 1 else "reach"
    return f"{n} of the {len(heads)} heads of {label} {reach} the threshold of a role: {listed(named)}."


def _of_role(role: str, heads: list[str]) -> str:
    named = ", ".join(heads[:MAX_OF_ROLE])
    more = f" and {len(heads) - MAX_OF_ROLE} more" if len(heads) > MAX_OF_ROLE else ""
    return f"{len(heads)} {role} ({named}{more})"


def _draw_trajectories(axes: Axes, label: str, heads: DataFrame) -> str:
    """Draw one model's heads, and say when the best ones rose."""
    sentences = []
    for score, role in TRAJECTORIES.items():
        best = str(heads.groupby("head_label")[score].last().idxmax())
        for head_label, line in heads.groupby("head_label"):
            style = {"marker": "o"} if head_label == best else {"linewidth": 0.8, "alpha": 0.4, "zorder": 1.5}
            axes.plot(line.tokens, line[score], color=ROLE_COLORS[role], **style)
        of_best = heads[heads.head_label == best]
        sentences.append(risen(f"{score} of {best}, the highest at the end,", of_best, score, MIN_RISE))
    axes.set_title(wrapped(label, MAX_MODELS))
    return f"In {label}, {'; '.join(sentences)}."
