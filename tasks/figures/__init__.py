"""The figures of a report, by the names that templates ask for; each is a function of a study's results."""

from collections.abc import Callable, Mapping

from tasks.figures.attention import attention
from tasks.figures.bigram_fit import bigram_fit
from tasks.figures.circuit_formation import circuit_formation
from tasks.figures.composition_graph import composition_graph
from tasks.figures.eigenvalues import eigenvalues
from tasks.figures.head_maps import head_maps, head_trajectories
from tasks.figures.learning import context_over_training, learning_curves, loss_in_context
from tasks.figures.path_terms import path_terms
from tasks.figures.score_terms import score_terms
from tasks.figures.style import Palette, Picture
from tasks.study_results import StudyResults

Drawing = Callable[[StudyResults, Palette], list[Picture]]

FIGURES: Mapping[str, Drawing] = {
    draw.__name__: draw
    for draw in (
        learning_curves,
        context_over_training,
        loss_in_context,
        head_maps,
        head_trajectories,
        attention,
        circuit_formation,
        composition_graph,
        score_terms,
        eigenvalues,
        path_terms,
        bigram_fit,
    )
}
