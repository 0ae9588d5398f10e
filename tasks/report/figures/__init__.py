"""The figures of a report, by the names that templates ask for; each is a function of a study's results."""

from collections.abc import Callable, Mapping

from headstream.tasks.report.figures.ablations import ablations
from headstream.tasks.report.figures.attention import attention, attention_aggregates
from headstream.tasks.report.figures.bigram_fit import bigram_fit
from headstream.tasks.report.figures.circuit_formation import circuit_formation
from headstream.tasks.report.figures.composition_graph import composition_graph
from headstream.tasks.report.figures.cost_curves import cost_curves
from headstream.tasks.report.figures.eigenvalue_spectra import eigenvalue_spectra
from headstream.tasks.report.figures.head_maps import head_maps, head_trajectories
from headstream.tasks.report.figures.head_similarity import head_similarity
from headstream.tasks.report.figures.heads_that_matter import heads_that_matter
from headstream.tasks.report.figures.importance_maps import importance_agreement, importance_maps
from headstream.tasks.report.figures.induction_circuit import induction_circuit
from headstream.tasks.report.figures.learning import context_over_training, learning_curves, loss_in_context
from headstream.tasks.report.figures.loss_over_size import loss_over_size
from headstream.tasks.report.figures.path_term_bars import path_term_bars
from headstream.tasks.report.figures.probe_accuracies import probe_accuracies
from headstream.tasks.report.figures.pruning_plots import pruning_curves
from headstream.tasks.report.figures.score_term_bars import score_term_bars
from headstream.tasks.report.pictures import Picture
from headstream.tasks.results.study_results import StudyResults

Drawing = Callable[[StudyResults], list[Picture]]

_IN_ORDER: tuple[Drawing, ...] = (
    learning_curves, context_over_training, loss_in_context, loss_over_size, head_maps, head_trajectories, attention,
    attention_aggregates, induction_circuit, circuit_formation, composition_graph, score_term_bars, eigenvalue_spectra,
    path_term_bars, bigram_fit, importance_maps, ablations, importance_agreement, heads_that_matter,
    pruning_curves, head_similarity, probe_accuracies, cost_curves,
)  # fmt: skip
FIGURES: Mapping[str, Drawing] = {draw.__name__: draw for draw in _IN_ORDER}
