"""The figures of a report, by the names that templates ask for; each is a function of a study's results."""

from collections.abc import Callable, Mapping

from tasks.figures.ablations import ablations
from tasks.figures.attention import attention
from tasks.figures.attention_aggregates import attention_aggregates
from tasks.figures.bigram_fit import bigram_fit
from tasks.figures.circuit_formation import circuit_formation
from tasks.figures.composition_graph import composition_graph
from tasks.figures.costs import costs
from tasks.figures.eigenvalues import eigenvalues
from tasks.figures.head_maps import head_maps, head_trajectories
from tasks.figures.head_similarity import head_similarity
from tasks.figures.heads_that_matter import heads_that_matter
from tasks.figures.importance_maps import importance_agreement, importance_maps
from tasks.figures.learning import context_over_training, learning_curves, loss_in_context
from tasks.figures.path_terms import path_terms
from tasks.figures.probes import probes
from tasks.figures.pruning_curves import pruning_curves
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
        attention_aggregates,
        circuit_formation,
        composition_graph,
        score_terms,
        eigenvalues,
        path_terms,
        bigram_fit,
        importance_maps,
        ablations,
        importance_agreement,
        heads_that_matter,
        pruning_curves,
        head_similarity,
        probes,
        costs,
    )
}
