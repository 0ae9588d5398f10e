"""What an explorer's page holds of a study: what was measured, and its models as far as they fit."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from headstream.models.bos import n_bos
from headstream.models.transformer import Transformer
from headstream.tasks.report.explorer.explorer_page import write_page_file
from headstream.tasks.report.explorer.kept_runs import kept_run
from headstream.tasks.report.explorer.model_files import ModelFiles
from headstream.tasks.report.explorer.page_pairs import PAIRS_SHOWN, pairs_shown, tokens_of
from headstream.tasks.report.explorer.passages import PASSAGE_TOKENS, NamedText, Passage, passages_of
from headstream.tasks.report.explorer.portable_models import layout, n_parameters, not_run, packed_weights, sizes
from headstream.tasks.report.explorer.portable_tokenizer import portable_tokenizer
from headstream.tasks.report.explorer.study_tables import study_tables
from headstream.tasks.results.study_results import StudyResults
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.text.token_spelling import Readable, distinct_labels
from headstream.tasks.training.checkpoints import checkpoint_steps, load_model
from headstream.tasks.words.markdown import short_count

MAX_PARAMETERS = 2_000_000  # of a model that runs in the page: a text then takes it about a second
WEIGHT_BYTES = 2_800_000  # of all weights in a page; base64 makes 4 bytes of 3
BYTES_OF_WEIGHT = 2
RUN_BYTES = 6_000_000  # of all attention kept for models that don't run in it
WEIGHTS_RULE = (
    f"Weights in 16 bits, of models of up to {short_count(MAX_PARAMETERS)} parameters: those of the last checkpoint,"
    " the models that stand for the best kinds first; then, of the first model, those around its phase change, of the"
    f" initialisation and others, as long as all fit {WEIGHT_BYTES / 1e6:.1f} MB."
)
RUNS_RULE = (
    "Of other models what each head attended to on the passages, in steps of 1/255, in the same order, as long as all"
    f" fit {RUN_BYTES / 1e6:.1f} MB, gzipped; loss and the likeliest tokens of each position."
)
PAIRS_RULE = (
    f"Of each prompt set {PAIRS_SHOWN} pairs are shown, evenly spread over those that the model was measured on."
)
PASSAGES_RULE = (
    "Passages are the windows of validation text in which most different pairs of tokens come again, one a document,"
    " and random tokens over and over; no model has a say in it."
)


class PageOptions(NamedTuple):
    """What sets a page apart from the one beside a report."""

    text: NamedText | None = None  # shown beside the passages
    version: str = ""  # of a study that is running: the page asks its server for a newer one
    served: bool = False  # its server runs the models that the page can't run itself


OF_A_REPORT = PageOptions()


def write_explorer(
    results: StudyResults,
    files: Mapping[str, ModelFiles],
    path: Path,
    answer: Sequence[str],
    options: PageOptions = OF_A_REPORT,
    on_progress: Callable[[float], None] = lambda fraction: None,
) -> None:
    """Write the explorer of a study; of models that `files` lacks it shows what the warehouse knows.

    `on_progress` hears the fraction done.
    """
    tables = study_tables(results)
    found = [model_id for model_id in tables["models"].get("model_id", []) if model_id in files]
    n_ctx = max(filter(None, tables["models"].get("n_ctx", ())), default=PASSAGE_TOKENS)
    page = _Page({model_id: files[model_id] for model_id in found}, n_ctx, options)
    pairs = results.rows("measured_pairs")
    for i, model_id in enumerate(found):
        on_progress(i / len(found))
        page.add_model(model_id, [row for row in pairs if row["model_id"] == model_id])
    running = [model_id for model_id in found if page.networks[model_id]["weights"]]
    if running:
        kept = checkpoint_steps(files[running[0]].checkpoints)
        page.add_checkpoints(running[0], _steps_to_show(tables, running[0], kept))
    study = results.rows("study")[0]
    contents = {
        "study": study["study"],
        "question": study["question"],
        "answer": list(answer),
        "version": options.version,
        "served": options.served,
        "notes": [WEIGHTS_RULE, RUNS_RULE, PASSAGES_RULE, *([PAIRS_RULE] if pairs else []), *page.notes()],
        "tables": tables,
        "texts": page.texts(),
        "networks": page.networks,
    }
    write_page_file(path, study["study"], contents, page.blocks)
    on_progress(1.0)


class _Page:
    """The models that a page holds, as it grows."""

    def __init__(self, files: Mapping[str, ModelFiles], n_ctx: int, options: PageOptions) -> None:
        self.served = options.served
        self.networks: dict[str, dict[str, Any]] = {}
        self.blocks: dict[str, bytes] = {}
        self._files = files
        self._weight_bytes = self._run_bytes = 0
        self._not_run: dict[str, None] = {}
        folders = list(dict.fromkeys(each.tokens for each in files.values()))
        self._texts = [_Text(Tokens.open(folder), n_ctx, options.text) for folder in folders]
        self._places = {folder: place for place, folder in enumerate(folders)}

    def add_model(self, model_id: str, pairs: Sequence[Mapping[str, Any]]) -> None:
        """Take a model in: as weights, or as what it does on the passages; and some of the pairs it was measured on."""
        folder = self._files[model_id].checkpoints
        step = checkpoint_steps(folder)[-1]
        model, place = load_model(folder, step), self._places[self._files[model_id].tokens]
        fields: dict[str, Any] = {
            "served": [],
            "text": place,
            "sizes": sizes(model),
            "layout": layout(model),
            "weights": {},
            "kept": {},
            "pairs": pairs_shown(pairs, self._texts[place].tokens, model.architecture.n_ctx),
        }
        self.networks[model_id] = fields
        self._texts[place].predicted.update(tokens_of(fields["pairs"]))
        if (unknown := not_run(model)) and not self.served:
            self._not_run[", ".join(unknown)] = None
        elif not unknown and n_parameters(model) <= MAX_PARAMETERS and self._add_weights(model_id, model, step):
            self._texts[place].needs_all_labels = True
            return
        if self.served:
            fields["served"] = checkpoint_steps(folder)
            self._texts[place].needs_all_labels = True
            return
        for i, passage in enumerate(self._texts[place].passages):
            facts, packed = kept_run(model, passage.tokens[: model.architecture.n_ctx])
            if self._run_bytes + len(packed) <= RUN_BYTES:
                name = f"run-{model_id}-{i}"
                self.blocks[name] = packed
                self._run_bytes += len(packed)
                fields["kept"][i] = facts | {"block": name}
                self._texts[place].predicted.update(chain.from_iterable(facts["best"]))

    def add_checkpoints(self, model_id: str, steps: Iterable[int]) -> None:
        """Take earlier weights of a model in, as many of the steps as fit."""
        folder = self._files[model_id].checkpoints
        missing = (step for step in steps if step not in self.networks[model_id]["weights"])
        for step in missing:
            model = load_model(folder, step)
            if not model.interventions and not self._add_weights(model_id, model, step):
                break

    def texts(self) -> list[dict[str, Any]]:
        """The token sets of the models, with their passages."""
        return [text.fields() for text in self._texts]

    def notes(self) -> list[str]:
        """Why some models don't run in the page, though they might be small enough."""
        return [
            f"Models with {options} don't run in the page, which has no forward pass for them."
            for options in self._not_run
        ]

    def _add_weights(self, model_id: str, model: Transformer, step: int) -> bool:
        """Whether the weights of a step still fit, and so are in the page."""
        fits = self._weight_bytes + BYTES_OF_WEIGHT * n_parameters(model) <= WEIGHT_BYTES
        if fits:
            name = f"weights-{model_id}-{step}"
            self.blocks[name] = packed_weights(model)
            self._weight_bytes += len(self.blocks[name])
            self.networks[model_id]["weights"][step] = name
        return fits


class _Text:
    """A token set, its passages, and the tokens whose text the page must know."""

    def __init__(self, tokens: Tokens, n_ctx: int, text: NamedText | None) -> None:
        self.tokens = tokens
        self.passages = passages_of(tokens, n_ctx)
        if text:
            ids = tokens.tokenizer.encode(text.text, add_special_tokens=False).ids
            self.passages.insert(0, Passage(text.name, [tokens.bos][: n_bos(tokens.bos)] + ids))
        self.predicted: set[int] = set()
        self.needs_all_labels = False

    def fields(self) -> dict[str, Any]:
        """What study.js reads."""
        shown = self.predicted.union(*(passage.tokens for passage in self.passages))
        labels = page_labels(self.tokens)
        ids = range(len(labels)) if self.needs_all_labels else sorted(shown)
        return {
            "labels": {token: labels[token] for token in ids},
            "opening": [self.tokens.bos][: n_bos(self.tokens.bos)],
            "tokenizer": portable_tokenizer(self.tokens.tokenizer) if self.needs_all_labels else None,
            "passages": [vars(passage) for passage in self.passages],
        }


def page_labels(tokens: Tokens) -> list[str]:
    """A label for each token, in which spaces and line ends are as they are: the page shows them by · ⏎ ⇥."""
    readable = Readable({sign: sign for sign in " \n\t"}, "·⏎⇥")
    return distinct_labels(tokens.tokenizer, tokens.token_bytes, readable)


def _steps_to_show(
    tables: Mapping[str, Mapping[str, list[Any]]], model_id: str, kept: Sequence[int]
) -> dict[int, None]:
    """The steps of a model's checkpoints in the order in which a page wants their weights, each once.

    First come those around its phase change and the initialisation, then others evenly spread.
    """

    def rows(table: str) -> Iterator[dict[str, Any]]:
        columns = tables[table]
        whole = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
        return (row for row in whole if row["model_id"] == model_id)

    steps = {row["tokens"]: row["step"] for row in rows("checkpoints")}
    changes = [row for row in rows("phase_changes") if row["score"] == "prefix_matching"]
    around = [steps[change[name]] for change in changes for name in ("window_start_tokens", "window_end_tokens")]
    nearest = [min(kept, key=lambda step: abs(step - wanted)) for wanted in around]
    spread = [kept[len(kept) * part // 8] for part in (0, 4, 2, 6, 1, 3, 5, 7)]
    return dict.fromkeys([*nearest, *spread, *kept])
