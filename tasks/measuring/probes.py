"""Linear probes of each head and of the residual stream, at a model's last checkpoint."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headstream.models.heads.linear_probes import Probes, control_labels, fit_probes, site_activations, standardise
from headstream.models.heads.probe_gain import Gains, commonest_labels, gains
from headstream.models.nodes import Head
from headstream.models.transformer import Transformer
from headstream.tasks.measuring.probe_labels import ProbeTask, probe_tasks
from headstream.tasks.measuring.probe_texts import ProbeText, ProbeTexts, probe_texts
from headstream.tasks.measuring.trained_model import TrainedModel
from headstream.tasks.study.analyses.probes_config import ProbesConfig


class Sites(NamedTuple):
    """Places of one width, each a layer and a head (None: the stream), and what is there at each token of each text."""

    places: Sequence[tuple[int, int | None]]
    texts: Sequence[Float[Tensor, "site example feature"]]


class Labelled(NamedTuple):
    """The tokens of a text that have a label: which they are, of which type and document, and their labels.

    The first labels are the task's, the others those of each control draw.
    """

    place: Int[Tensor, "example"]
    type: Int[Tensor, "example"]
    document: Int[Tensor, "example"]
    labels: Int[Tensor, "problem example"]


def measure_probes(config: ProbesConfig, trained: TrainedModel) -> None:
    """Write probes and probe_tasks.

    Cost: with the sites (heads, and layers plus one) and their widths, times the tasks; the passes that read them
    hardly count, nor do vocabulary and checkpoints. Of what is read, a layer is held at a time.

    Raises:
        UserError: the text is too short for one sequence.
    """
    tokens, model = trained.tokens, trained.model
    n_tokens = (config.train_tokens, config.selection_tokens, config.test_tokens)
    texts = probe_texts(tokens, model.architecture.n_ctx - 1, *n_tokens)
    tasks = probe_tasks(tokens, texts)
    labelled = [
        (task, _with_controls(task, texts, tokens.vocabulary, config.control_draws, generator))
        for task in tasks
        if task.why_absent is None
        for generator in [_generator(config.seed, trained.weights_sha256, task.name)]
    ]
    trained.on_progress(0.2)
    rows: list[dict[str, Any]] = []
    for sites in _sites(model, tokens.bos, texts):
        for task, own in labelled:
            rows += _probe_rows(config, task, sites, own, tokens.vocabulary)
        trained.on_progress((1 + 4 * (sites.places[0][0] + 1) / (len(model.layers) + 1)) / 5)
    trained.write("probe_tasks", [_task_row(task, texts) for task in tasks])
    if rows:
        trained.write("probes", rows)


def _generator(seed: int, weights: str, task: str) -> torch.Generator:
    """Draws of a model's own, whatever it is called: their errors are then independent over models and tasks."""
    digest = hashlib.sha256(f"{seed} {weights} {task}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7]))


def _sites(model: Transformer, bos: int, texts: ProbeTexts) -> Iterator[Sites]:
    """The heads of each layer, if there are any, and the stream before it and at the end."""
    by_layer = zip(*(site_activations(model, text.sequences(bos), bos) for text in texts), strict=True)
    for layer, of_texts in enumerate(by_layer):
        of_heads, of_stream = zip(*of_texts, strict=True)
        if len(of_heads[0]):
            yield Sites([(layer, head) for head in range(len(of_heads[0]))], of_heads)
        yield Sites([(layer, None)], [stream[None] for stream in of_stream])


def _with_controls(
    task: ProbeTask, texts: ProbeTexts, d_vocab: int, n_draws: int, generator: torch.Generator
) -> list[Labelled]:
    """Each text's tokens that have a label; control labels are random ones for each token of the vocabulary."""
    of_texts = [torch.from_numpy(labels) for labels in task.labels]
    controls = control_labels(of_texts[0][of_texts[0] >= 0], task.n_labels, d_vocab, n_draws, generator)

    def labelled(text: ProbeText, labels: Tensor) -> Labelled:
        place = (labels >= 0).nonzero()[:, 0]
        types = torch.from_numpy(text.windows.ravel())[place]
        document = torch.from_numpy(text.document_numbers())[place]
        return Labelled(place, types, document, torch.cat([labels[None, place], controls[:, types]]))

    return [labelled(text, labels) for text, labels in zip(texts, of_texts, strict=True)]


def _probe_rows(
    config: ProbesConfig, task: ProbeTask, sites: Sites, labelled: Sequence[Labelled], d_vocab: int
) -> list[dict[str, Any]]:
    """Rows of `probes`: a probe of each site on the tokens that have a label."""
    device = sites.texts[0].device
    features = standardise(*(text[:, of.place.to(device)] for text, of in zip(sites.texts, labelled, strict=True)))
    train, selection, test = labelled
    probes = fit_probes(
        features[0], train.labels.to(device), task.n_labels, penalty=config.penalty, max_steps=config.max_steps
    )
    by_type = commonest_labels(train.labels[0], train.type, task.n_labels, d_vocab)
    majority = train.labels[0].mode().values
    selected = _gains(probes, features[1], selection, by_type, majority)
    tested = _gains(probes, features[2], test, by_type, majority)
    columns = {**tested._asdict(), "selection_gain": selected.gain, "converged": probes.converged.all(1)}
    return [
        {
            "site": f"R{layer}" if head is None else str(Head(layer, head)),
            "task": task.name,
            "layer": layer,
            "head": head,
            **{name: values[place].item() for name, values in columns.items()},
        }
        for place, (layer, head) in enumerate(sites.places)
    ]


def _gains(
    probes: Probes,
    features: Float[Tensor, "site example feature"],
    text: Labelled,
    by_type: Int[Tensor, "d_vocab"],
    majority: Int[Tensor, ""],
) -> Gains:
    right = probes.predict(features).cpu() == text.labels
    label = text.labels[0]
    return gains(right[:, 0], right[:, 1:], label == majority, label == by_type[text.type], text.document)


def _task_row(task: ProbeTask, texts: ProbeTexts) -> dict[str, Any]:
    row = {"task": task.name, "why_absent": task.why_absent}
    sizes = ("n_classes", "n_train", "n_selection", "n_test", "n_test_documents")
    if task.why_absent is not None:
        return row | dict.fromkeys(sizes)
    n_labelled = [int((labels >= 0).sum()) for labels in task.labels]
    n_documents = len(np.unique(texts.test.document_numbers()[task.labels[2] >= 0]))
    return row | dict(zip(sizes, (task.n_labels, *n_labelled, n_documents), strict=True))
