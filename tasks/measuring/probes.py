"""What linear probes tell from each head and from the residual stream, at a model's last checkpoint."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.heads.linear_probes import control_labels, fit_probes, site_activations, standardise
from models.transformer import Transformer
from tasks.measuring.probe_labels import ProbeTask, ProbeText, probe_tasks, probe_texts
from tasks.measuring.trained_model import TrainedModel
from tasks.study.analysis_config import ProbesConfig


class Sites(NamedTuple):
    """Places of one width, each a layer and a head (None for the stream), and what is there at every token."""

    places: Sequence[tuple[int, int | None]]
    train: Float[Tensor, "site example feature"]
    test: Float[Tensor, "site test_example feature"]


def measure_probes(config: ProbesConfig, trained: TrainedModel) -> None:
    """Write probes and probe_tasks.

    Raises:
        UserError: the text is too short for one sequence.
    """
    tokens, model = trained.tokens, trained.model
    texts = probe_texts(tokens, model.architecture.n_ctx - 1, config.train_tokens, config.test_tokens)
    tasks = probe_tasks(tokens, *texts)
    trained.on_progress(0.2)
    sites = _read_sites(model, tokens.bos, *texts)
    rows: list[dict[str, Any]] = []
    for n_done, task in enumerate(tasks, start=1):
        if task.why_absent is None:
            labels = _labels_with_control(task, *texts, tokens.vocabulary, config.seed)
            rows += [row for group in sites for row in _probe_rows(config, task, group, *labels)]
        trained.on_progress(0.2 + 0.8 * n_done / len(tasks))
    trained.write("probe_tasks", [_task_row(task) for task in tasks])
    if rows:
        trained.write("probes", rows)


def _read_sites(model: Transformer, bos: int, train: ProbeText, test: ProbeText) -> list[Sites]:
    """The heads, layer by layer, if there are any, and the stream before each layer and at the end."""
    heads_per_layer = model.architecture.heads_per_layer
    heads = [(layer, head) for layer, n_heads in enumerate(heads_per_layer) for head in range(n_heads)]
    streams = [(layer, None) for layer in range(len(heads_per_layer) + 1)]
    train_z, train_stream = site_activations(model, train.sequences(bos))
    test_z, test_stream = site_activations(model, test.sequences(bos))
    found = Sites(heads, train_z, test_z), Sites(streams, train_stream, test_stream)
    return [sites for sites in found if sites.places]


def _labels_with_control(
    task: ProbeTask, train: ProbeText, test: ProbeText, d_vocab: int, seed: int
) -> tuple[Int[Tensor, "2 example"], Int[Tensor, "2 test_example"]]:
    """The task's labels above those of its control, which has a random one for each token of the vocabulary."""
    labels, test_labels = torch.from_numpy(task.train), torch.from_numpy(task.test)
    generator = torch.Generator().manual_seed(seed)
    control = control_labels(labels[labels >= 0], task.n_labels, d_vocab, generator)
    return (
        torch.stack([labels, control[torch.from_numpy(train.windows.ravel())]]),
        torch.stack([test_labels, control[torch.from_numpy(test.windows.ravel())]]),
    )


def _probe_rows(
    config: ProbesConfig,
    task: ProbeTask,
    sites: Sites,
    labels: Int[Tensor, "2 example"],
    test_labels: Int[Tensor, "2 test_example"],
) -> list[dict[str, Any]]:
    """Rows of `probes`: a probe of each site on the tokens that have a label."""
    labelled, test_labelled = labels[0] >= 0, test_labels[0] >= 0
    labels, test_labels = labels[:, labelled], test_labels[:, test_labelled]
    baseline = float((test_labels[0] == labels[0].mode().values).double().mean())
    device = sites.train.device
    train, test = standardise(sites.train[:, labelled.to(device)], sites.test[:, test_labelled.to(device)])
    probes = fit_probes(train, labels.to(device), task.n_labels, penalty=config.penalty, max_steps=config.max_steps)
    right = probes.predict(test) == test_labels.to(device)
    accuracies, converged = right.double().mean(2).tolist(), probes.converged.all(1).tolist()
    return [
        {
            "site": f"R{layer}" if head is None else f"L{layer}H{head}",
            "task": task.name,
            "layer": layer,
            "head": head,
            "accuracy": accuracy,
            "baseline_accuracy": baseline,
            "control_accuracy": control_accuracy,
            "selectivity": accuracy - control_accuracy,
            "converged": is_optimum,
        }
        for (layer, head), (accuracy, control_accuracy), is_optimum in zip(
            sites.places, accuracies, converged, strict=True
        )
    ]


def _task_row(task: ProbeTask) -> dict[str, Any]:
    if task.why_absent is not None:
        return {"task": task.name, "n_classes": None, "n_train": None, "n_test": None, "why_absent": task.why_absent}
    n_train, n_test = (int((labels >= 0).sum()) for labels in (task.train, task.test))
    return {"task": task.name, "n_classes": task.n_labels, "n_train": n_train, "n_test": n_test, "why_absent": None}
