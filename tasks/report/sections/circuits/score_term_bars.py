"""What attention scores of later heads consist of: how much comes from earlier heads, through what, and from which."""

from matplotlib.figure import Figure
from pandas import DataFrame, Series

from headstream.tasks.report.figures.by_model import FigureOfEachModel
from headstream.tasks.report.figures.style import AMBER, GREY, INDIGO, KIND_COLORS, MUTED, OLIVE, name_places, panel
from headstream.tasks.report.pictures import Picture
from headstream.tasks.report.sentences import not_drawn
from headstream.tasks.results.study_results import StudyResults

_FIGURE = FigureOfEachModel(
    "score_terms",
    ("score_terms",),
    look="What attention scores vary with: position, the tokens themselves, or what earlier heads wrote.",
    why_none="no model has later heads whose scores were decomposed",
)
_MAX_HEADS = 12
COMPOSED = ["Q", "K", "QK"]
PARTS = {
    "position": ("position", GREY),
    "direct": ("the tokens themselves", OLIVE),
    "Q": ("earlier heads, read by queries", KIND_COLORS["Q"]),
    "K": ("earlier heads, read by keys", KIND_COLORS["K"]),
    "QK": ("earlier heads, read by both", INDIGO),
    "feed-forward": ("feed-forward layers", AMBER),
}
SIDES = {"query_source": "queries", "key_source": "keys"}
_BAR = 0.3  # inches


def score_term_bars(results: StudyResults) -> list[Picture]:
    """Shares of the variance of later heads' attention scores, by who wrote what queries and keys read."""

    def draw(label: str, terms: DataFrame) -> tuple[str, Figure]:
        shares = terms.groupby(["head_label", "composition"], sort=False).share.sum().unstack(fill_value=0.0)
        shares = shares.reindex(columns=[part for part in PARTS if part in shares.columns])
        composed = shares.reindex(columns=COMPOSED, fill_value=0.0).sum(axis=1)
        drawn = shares[composed.rank(ascending=False, method="first") <= _MAX_HEADS]
        others = not_drawn(len(shares) - len(drawn), "head", "with smaller shares")
        return f"{_sentence(label, shares, composed, terms)}{others}", _bars(label, drawn, terms)

    terms = results.frame("score_terms").dropna(subset=["share"])
    return _FIGURE.pictures(results, terms, draw)


def strongest_source(terms: DataFrame) -> tuple[str, str, float] | None:
    """The earlier head with the largest share in a head's scores, what reads it (queries or keys), and that share."""
    found = []
    for side, name in SIDES.items():
        by_head = terms[terms[side].str.fullmatch(r"L\d+H\d+")].groupby(side).share.sum()
        found += [(str(head), name, share) for head, share in by_head.items()]
    return max(found, key=lambda source: source[2], default=None)


def _sentence(label: str, shares: DataFrame, composed: Series, terms: DataFrame) -> str:
    """Which head reads earlier ones most, which it reads, and how many attend by position."""
    best = composed.idxmax()
    source = strongest_source(terms[terms.head_label == best])
    most = f"; {source[0]} in its {source[1]} contributes most ({source[2]:.2f})" if source else ""
    n_by_position = (shares["position"] > 0.5).sum() if "position" in shares else 0
    largest = f"{best} owes the largest share of the variance of its attention scores to earlier heads"
    by_position = f"In {n_by_position} of {len(shares)}, position alone accounts for over half."
    return f"Of the later heads of {label}, {largest}: {composed[best]:.2f}{most}. {by_position}"


def _bars(label: str, shares: DataFrame, terms: DataFrame) -> Figure:
    """A bar for each head, its parts side by side; parts that oppose the whole lie left of 0."""
    figure, axes = panel(1.1 + _BAR * len(shares))
    rows = range(len(shares))
    right, left = (Series(0.0, index=shares.index) for _ in range(2))
    for part in shares:
        name, color = PARTS[part]
        share = shares[part]
        start = right.where(share >= 0, left + share)
        axes.barh(rows, share.abs(), left=start, height=0.7, color=color, alpha=0.75, label=name)
        right, left = right + share.clip(lower=0), left + share.clip(upper=0)
    for row, head in enumerate(shares.index):
        if source := strongest_source(terms[terms.head_label == head]):
            text = f"{source[0]} in {source[1]}: {source[2]:.2f}"
            axes.text(right[head] + 0.015, row, text, va="center", fontsize=9, color=MUTED)
    name_places(axes.yaxis, list(shares.index))
    axes.invert_yaxis()
    axes.set_xlim(right=right.max() + 0.3)  # for the text
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axes.set_title(f"{label}: shares of the variance of attention scores")
    axes.spines["bottom"].set_visible(False)
    figure.legend(loc="outside upper left", ncols=3)
    return figure
