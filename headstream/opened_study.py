"""A study's results for use in Python."""

import html
import os
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd

from headstream.arguments import text_of
from headstream.tasks import places
from headstream.tasks.errors import UserError, WorkError
from headstream.tasks.report.answer import answer_lines
from headstream.tasks.results.exact_frames import exact_frame
from headstream.tasks.results.stored_models import MAX_LISTED_MODELS, stored_folders
from headstream.tasks.results.study_results import open_results
from headstream.tasks.results.tables import quoted
from headstream.tasks.results.warehouse import build_warehouse
from headstream.tasks.results.warehouse_reading import attach_warehouse
from headstream.tasks.storage.latest_records import latest_records
from headstream.tasks.storage.store import Store
from headstream.tasks.studies.known_studies import find_study
from headstream.tasks.study.mistakes import nearest
from headstream.tasks.study.schema import read_study

if TYPE_CHECKING:
    from headstream.opened_model import StudyModel
    from headstream.results_figures import Plot

NAMES = ["label", "name", "cell", "model_id"]  # columns with names of a model
# The condition for rows about a study, by the first of these columns that a table has.
OF_STUDY = {
    "study": "study = {study}",
    "model_id": "model_id IN (SELECT model_id FROM study_models WHERE study = {study})",
    "corpus_id": "corpus_id IN (SELECT corpus_id FROM models JOIN study_models USING (model_id) WHERE study = {study})",
}


# Columns of `models` that are shown in a notebook.
SHOWN = ["label", "seed", "n_layers", "total_heads", "d_model", "parameters", "tokens", "final_train_loss_nats"]


class Results:
    """The results of a study's last run: its answer, its models, and every table and figure of its report.

    >>> results = hs.open("quick")
    >>> print(results)
    """

    def __init__(self, study: str) -> None:
        self.study = study
        with open_results(places.warehouse_file(), study) as results:
            self.question: str = results.rows("study")[0]["question"]
            self.answer = answer_lines(results)

    @property
    def models(self) -> pd.DataFrame:
        """The study's models: the names of each, and a column for every setting.

        >>> results.models[["label", "seed", "parameters"]]
        """
        return _query(
            "SELECT label, cell, models.* FROM labelled_models JOIN models USING (model_id)"
            f" WHERE study = {quoted(self.study)} ORDER BY label, models.seed, model_id"
        )

    def model(
        self, name: str | None = None, *, step: int | None = None, tokens: float | None = None, **settings: Any
    ) -> "StudyModel":
        """One of the study's models: after its last training step, after `step`, or nearest to a number of `tokens`.

        `name` is its label in reports, like 2L4H, its place in the grid or its id; `settings` are columns of `models`,
        like seed=0.

        >>> results.model("2L4H", seed=0, tokens=1_000_000)

        Raises:
            UserError: that doesn't match exactly one model, or no weights were kept at that step.
            WorkError: its weights in the store are missing or damaged.
        """
        from headstream.opened_model import StudyModel  # torch takes a second to import

        model_id, label = self._named(name, settings)
        model = StudyModel(
            label, model_id, self.study, *stored_folders(Store(places.store_folder()), model_id, self.study)
        )
        return model if step is None and tokens is None else model.at(step, tokens)

    def _named(self, name: str | None, settings: dict[str, Any]) -> tuple[str, str]:
        """The id and the label of one of the study's models."""
        models = self.models
        if name is not None:
            name = text_of(name, "a model's name")
        found = models if name is None else models[(models[NAMES] == name).any(axis=1)]
        for column, value in settings.items():
            if column not in models:
                raise UserError(f"there is no setting {column!r} in `models`.{nearest(column, models)}")
            found = found[[_is_same(each, value) for each in found[column]]]
        if len(found) != 1:
            asked = " ".join(filter(None, [name, *(f"{column}={value}" for column, value in settings.items())]))
            matches = f"{asked!r} matches {len(found)} models" if asked else f"the study has {len(found)} models"
            raise UserError(f"{matches}; name exactly one of {_listed(models if found.empty else found)}.")
        return found.model_id.iloc[0], found.label.iloc[0]

    def circuit(self, prompts: str, name: str | None = None, **settings: Any) -> pd.DataFrame:
        """The edges that carry a behaviour in one of the study's models, the largest share first.

        `prompts` is a prompt set of the study; `name` and `settings` choose a model as `model` does.

        >>> results.circuit("repeats", "2L4H").head()

        Raises:
            UserError: no circuit was found, or that doesn't match exactly one model.
        """
        model_id, _ = self._named(name, settings)
        where = f"model_id = {quoted(model_id)} AND prompts = {quoted(prompts)}"
        edges = _query(f"FROM circuit_edges WHERE {where}").drop(columns=["model_id", "studies", "prompts"])
        if edges.empty:
            known = _query(f"SELECT DISTINCT prompts FROM prompt_circuits WHERE model_id = {quoted(model_id)}").prompts
            there = f"Those that have one are {', '.join(known)}." if len(known) else "It has none."
            raise UserError(f"no circuit of {prompts!r} was found in {model_id}. {there}")
        return edges

    def frame(self, name: str) -> pd.DataFrame:
        """The rows of a table or view (data/README.md describes them) that are about this study.

        >>> results.frame("head_summary")

        Raises:
            UserError: there is no such table.
        """
        name = text_of(name, "a table's name")
        columns = _query(f"SELECT column_name FROM duckdb_columns() WHERE table_name = {quoted(name)}").column_name
        if columns.empty:
            tables = _query("SELECT DISTINCT table_name FROM duckdb_columns() WHERE NOT internal").table_name
            raise UserError(f"there is no table or view {name!r} in the warehouse.{nearest(name, tables)}")
        of_study = next((where for column, where in OF_STUDY.items() if column in set(columns)), "true")
        return _query(f"FROM {name} WHERE {of_study.format(study=quoted(self.study))}")

    def sql(self, query: str) -> pd.DataFrame:
        """The rows of a query over all studies.

        >>> results.sql("SELECT * FROM induction_by_depth")

        Raises:
            UserError: the query is wrong.
        """
        return _query(text_of(query, "a query"))

    @property
    def plots(self) -> list[str]:
        """The names of the report's figures, which `plot` draws.

        >>> results.plots
        """
        from headstream.results_figures import figure_names

        return figure_names()

    def plot(self, name: str) -> "Plot":
        """A figure of the study's report, by its name; `plots` lists all.

        >>> results.plot("context_over_training")

        Raises:
            UserError: reports have no such figure, or this study has nothing for it to show.
        """
        from headstream.results_figures import drawn_figure

        return drawn_figure(self.study, name)

    def _repr_html_(self) -> str:
        """The answer, and the models as a table."""
        lines = "".join(f"<li>{html.escape(line)}</li>" for line in self.answer)
        title = f"<p><b>{html.escape(self.study)}</b> {html.escape(self.question)}</p>"
        models = self.models[SHOWN].head(MAX_LISTED_MODELS)
        more = len(self.models) - len(models)
        rest = f"<p>And {more} more: `models` has all.</p>" if more else ""
        return f"{title}<ul>{lines}</ul>{models.to_html(index=False, na_rep='', float_format='{:.3f}'.format)}{rest}"

    def __repr__(self) -> str:
        lines = [f"- {line}" for line in self.answer]
        return "\n".join([f"Study {self.study}: {self.question}".strip(), *lines, f"Models: {_listed(self.models)}"])


def open(study: str | os.PathLike[str]) -> Results:
    """The results of a study, by its name or the path of its file.

    >>> results = hs.open("quick")

    Raises:
        UserError: there is no such study, or it hasn't run.
    """
    study, store = text_of(study, "a study"), Store(places.store_folder())
    name = study if study in latest_records(store) else read_study(find_study(study)).name
    if name not in latest_records(store):
        raise UserError(f"the study {study!r} has not run yet. Run it: headstream.run({study!r}).")
    build_warehouse(store, places.warehouse_file())
    return Results(name)


def studies() -> pd.DataFrame:
    """The studies that have run.

    >>> hs.studies()

    Raises:
        UserError: none has.
    """
    return _query("SELECT study, question, n_models, n_failed, finished_at FROM studies ORDER BY study")


def _in_one_line(error: Exception) -> list[str]:
    return [f"{type(error).__name__}: {error}"]


# A notebook shows these errors by their message alone, without a traceback through Headstream.
UserError._render_traceback_ = _in_one_line  # type: ignore[attr-defined]
WorkError._render_traceback_ = _in_one_line  # type: ignore[attr-defined]


def _query(query: str) -> pd.DataFrame:
    with duckdb.connect() as connection:
        attach_warehouse(connection, places.warehouse_file())
        try:
            rows = connection.sql(query)
            if rows is not None:
                return exact_frame(rows)
        except duckdb.Error as error:
            reason = " ".join(str(error).partition("\n\nLINE ")[0].split())
            raise UserError(f"the query failed: {reason}") from None
    raise UserError(f"the query {query!r:.100} returns no rows. Write a SELECT.")


def _is_same(held: Any, asked: Any) -> bool:
    """True if a value of a frame is the one that was asked for; arrays are lists."""
    held, asked = (each.tolist() if hasattr(each, "tolist") else each for each in (held, asked))
    return held is not pd.NA and bool(held == asked)


def _listed(models: pd.DataFrame) -> str:
    first = models.head(MAX_LISTED_MODELS)
    names = [row.label if pd.isna(row.seed) else f"{row.label} seed={row.seed}" for row in first.itertuples()]
    more = f" and {len(models) - MAX_LISTED_MODELS} more" if len(models) > MAX_LISTED_MODELS else ""
    return "; ".join(names) + more
