"""The command `headstream`. Heavy imports are inside commands, so that --help answers at once."""

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer.core import TyperCommand

from headstream.tasks import places
from headstream.tasks.errors import UserError, WorkError
from headstream.tasks.machines.process_environment import (
    choose_prefect_home,
    configure_output,
    isolate_child_processes,
    output_written,
    require_current_folder,
    tolerate_warnings,
)

if TYPE_CHECKING:
    from headstream.tasks.study.schema import Study
    from headstream.tasks.study.sources import StudyFile

app = typer.Typer(
    name="headstream",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
StudyArgument = Annotated[
    str, typer.Argument(help="Name of a study that ships or has run here, or path to a study file.")
]
STOP_THEMSELVES = {"run", "up", "watch"}  # when a signal comes
Format = Annotated[Literal["table", "csv", "json", "markdown"], typer.Option(help="Format of the rows.")]


def hours(text: str) -> float:
    """The hours of a time like 2h, 1.5h or 90m.

    Raises:
        UserError: it is no such time.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(h|m|min)", text.strip())
    if not found:
        raise UserError(f"--within must be a time like 2h or 90m, got {text!r}.")
    return float(found[1]) / (1 if found[2] == "h" else 60)


def _print_version(asked: bool) -> None:
    if asked:
        from headstream.tasks.storage.provenance import package_version

        print(f"headstream {package_version('headstream')}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Train grids of small transformers, or take those that you have, and measure every attention head."""
    if context.invoked_subcommand not in STOP_THEMSELVES:
        from headstream.tasks.machines.stopping import stopping_at_signals

        words = context.with_resource(stopping_at_signals())
        words.how_far, words.goes_on = lambda: "", False


@app.command(epilog="Example: headstream run quick")
def run(
    study: StudyArgument,
    jobs: Annotated[int | None, typer.Option(min=1, help="Models made at once; default: one per core.")] = None,
    runner: Annotated[
        Literal["threads", "ray"] | None,
        typer.Option(help="Place where models are made: threads here, or a Ray cluster; default: the study's choice."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace another study of the same name, and its results.")
    ] = False,
    within: Annotated[
        float | None,
        typer.Option(
            parser=hours, metavar="TIME", help="Of seeds until claims are decided: stop at a look, like 2h or 90m."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", hidden=True)] = False,
) -> None:
    """Make everything that a study still lacks, then print its answer and the path of its report."""
    if dry_run:
        raise UserError(f"`run` has no --dry-run: did you mean `headstream plan {study}`, which says what it would do?")
    from headstream.tasks.machines.quiet_output import output_to_log
    from headstream.tasks.machines.stopping import stopping_at_signals
    from headstream.tasks.studies.own_names import reserve_name

    with stopping_at_signals() as words:
        loaded, file = _load(study)
        if within is not None and loaded.until_decided is None:
            raise UserError(
                f"--within is for studies that add seeds until claims are decided, which {loaded.name!r} doesn't."
                ' Leave it out, or write `seed = { until = "decided" }` in [grid].'
            )
        reserve_name(loaded, file, replace=replace)
        loaded = loaded.with_resources(runner, jobs)
        _say_of(loaded, "looking for what is there already")
        from headstream.tasks.graph.finished_study import finished_result_lines

        if lines := finished_result_lines(loaded):
            _say_of(loaded, "nothing was missing")
        else:
            choose_prefect_home(places.prefect_cache(), places.prefect_folder())
            with output_to_log(words) as terminal:
                from headstream.flows.run_command import run_with_progress  # imports Prefect

                lines = run_with_progress(loaded, terminal, words, within)
        _print_lines(lines)


@app.command(epilog="Example: headstream plan quick")
def plan(
    study: StudyArgument,
    every_line: Annotated[
        bool, typer.Option("--all", help="List every artifact, and what the study lacks for each claim.")
    ] = False,
    export: Annotated[bool, typer.Option("--export", help="Say which formats its models can be exported to.")] = False,
) -> None:
    """Show what `run` would do and why, how long it would take, and which claims the study can decide."""
    from headstream.flows.plan_command import print_export_formats, print_plan

    loaded, file = _load(study)
    print_plan(loaded, file, every_line)
    if export:
        print_export_formats(loaded)


class _Query(TyperCommand):
    """A command whose argument may begin with --, as a comment in SQL does."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        queries = [] if "--" in args else [arg for arg in args if re.match(r"--([^=]*\s|.*\n)", arg)]
        others = [arg for arg in args if arg not in queries]
        return super().parse_args(ctx, [*others, "--", *queries] if queries else others)


@app.command(cls=_Query, epilog='Example: headstream sql "select * from induction_by_depth"')
def sql(
    query: Annotated[
        str | None,
        typer.Argument(help="One SELECT; or a table or view, to list its columns; default: list tables and views."),
    ] = None,
    format: Format = "table",
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds after which the query is stopped.")] = 30.0,
) -> None:
    """Query the results in SQL; queries are read-only, and reach nothing outside the warehouse."""
    from headstream.tasks import places
    from headstream.tasks.results.output_formats import format_table
    from headstream.tasks.results.sql import list_columns, list_tables, run_sql

    warehouse = places.warehouse_file()
    if not query:
        rows = list_tables(warehouse)
    elif query.isidentifier():
        rows = list_columns(warehouse, query)
    else:
        rows = run_sql(warehouse, query, timeout, lossless=True)
    print(format_table(rows, format))


@app.command(epilog="Example: headstream claims quick")
def claims(study: StudyArgument, format: Format = "table") -> None:
    """Show a study's verdict on each claim: findings first, then descriptions, then self-checks in one line."""
    from headstream.tasks import places
    from headstream.tasks.results.claims import banner_of, claims_of
    from headstream.tasks.results.output_formats import format_table
    from headstream.tasks.results.warehouse import build_warehouse
    from headstream.tasks.storage.home_store import open_store

    name = _name_of(study)
    build_warehouse(open_store(), places.warehouse_file())  # a claim may be new
    in_words = format in ("table", "markdown")
    rows = claims_of(places.warehouse_file(), name, in_words)
    if in_words and (banner := banner_of(places.warehouse_file(), name)):
        _print_lines([banner, ""])
    print(format_table(rows, format))


@app.command(epilog="Example: headstream report quick")
def report(study: StudyArgument) -> None:
    """Write a study's report again from the warehouse, and print its path."""
    from headstream.tasks.steps.report_steps import report_again

    print(report_again(_name_of(study)))


@app.command(epilog="Example: headstream explore quick")
def explore(
    study: Annotated[str, typer.Argument(metavar="STUDY|MODEL", help="A study that has run, or the id of a model.")],
    text: Annotated[
        Path | None, typer.Option(help="A text file to show beside the passages, cut to the model's context.")
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Only write or serve the page, and print where.")] = False,
    serve: Annotated[
        bool,
        typer.Option(
            "--serve", help="Serve it to browsers on this machine, and run models that a page is too small for."
        ),
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to serve it on; 0: any free one.")] = 0,
) -> None:
    """Write a study's explorer, an offline page of its heads and what they do with text, and open it in a browser."""
    from headstream.flows.explore_command import print_explorer, serve_explorer
    from headstream.tasks import places
    from headstream.tasks.results.study_results import study_of_model

    of_model = study_of_model(places.warehouse_file(), study)
    name, model = of_model or _name_of(study), study if of_model else None
    if serve:
        serve_explorer(name, model, text, port, not no_open)
    else:
        print_explorer(name, model, text, not no_open)


@app.command(epilog="Example: headstream watch quick")
def watch(
    study: Annotated[
        str | None, typer.Argument(help="Name of a study, or path to its file; default: the one that is running.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="If it isn't running, wait until it is.")] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Serve its explorer, with each new checkpoint, to browsers on this machine.")
    ] = False,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port of that explorer; default: any free one.")
    ] = None,
) -> None:
    """Show a study that runs in another terminal or on a schedule: losses, heads, the time left.

    Scores of checkpoints are preliminary: they are measured here, on little text. The run isn't disturbed, and Ctrl-C
    stops only the display. Ends with the run: exit code 1 if that failed or was stopped.
    """
    from headstream.flows.watch_command import watch_study

    served_on = port or 0 if serve or port else None
    raise typer.Exit(watch_study(_name_of(study) if study else None, wait, served_on))


@app.command(epilog="Example: headstream diff quick heads")
def diff(
    first: Annotated[str, typer.Argument(help="Name of a study that has run.")],
    second: Annotated[str, typer.Argument(help="Name of another study that has run.")],
) -> None:
    """Show what differs between two studies: settings, metrics beyond their error bars, verdicts on claims."""
    from headstream.flows.diff_command import print_changes

    print_changes(_name_of(first), _name_of(second))


@app.command(epilog="Example: headstream studies")
def studies() -> None:
    """List the studies that ship and your own that were started here, with the state of each."""
    from headstream.flows.studies_command import print_studies

    print_studies()


@app.command(epilog="Example: headstream export 2L4H exported --study quick")
def export(
    model: Annotated[str, typer.Argument(help="A model's label in reports, like 2L4H, or its id.")],
    folder: Annotated[Path, typer.Argument(help="New or empty folder to write.")],
    to: Annotated[
        Literal["headstream", "huggingface", "transformer-lens"],
        typer.Option(help="Format; the latter two can't represent every architecture."),
    ] = "headstream",
    study: Annotated[str | None, typer.Option(help="Study of the model, if several have one with that label.")] = None,
    step: Annotated[int | None, typer.Option(min=0, help="Training step; default: the last.")] = None,
    all_steps: Annotated[
        bool, typer.Option("--all-steps", help="Write every checkpoint, each to its own folder: step0000100 and so on.")
    ] = False,
) -> None:
    """Write a model and its tokenizer in a format that other tools and other studies can read."""
    from headstream.flows.export_command import export_model

    export_model(model, folder, to, study, step, all_steps)


@app.command(epilog="Example: headstream inspect exported")
def inspect(path: Annotated[Path, typer.Argument(help="File or folder of a model, whoever trained it.")]) -> None:
    """Describe a model from elsewhere (format, size, tokenizer, architecture), or say why it can't be studied."""
    from headstream.flows.inspect_command import print_description

    print_description(path)


@app.command(epilog="Example: headstream prompts closing --model 2L4H --study quick")
def prompts(
    prompts: Annotated[
        str | None, typer.Argument(help="A set that ships, or a file of pairs; default: list the sets.")
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            help="A model's label in reports, like 2L4H, or its id; or a file, folder or installed package that holds"
            " one from elsewhere."
        ),
    ] = "",
    study: Annotated[str | None, typer.Option(help="Study of the model, if several have one with that label.")] = None,
    pairs: Annotated[int, typer.Option(min=8, max=100_000, help="Maximum number of pairs that are tried.")] = 200,
) -> None:
    """List prompt sets, or say what a model makes of one: pairs kept and dropped, accuracy, log-odds."""
    from headstream.flows.prompts_command import print_asked, print_prompt_sets

    if prompts is None:
        print_prompt_sets()
    elif not model:
        raise UserError(f"{prompts!r} is asked of a model, got none. Add --model, like `--model 2L4H --study quick`.")
    else:
        print_asked(prompts, model, study, pairs)


@app.command(epilog="Example: headstream index")
def index() -> None:
    """Rebuild the warehouse from the store, and print its path."""
    from headstream.tasks import places
    from headstream.tasks.results.warehouse import build_warehouse
    from headstream.tasks.storage.home_store import open_store

    build_warehouse(open_store(), places.warehouse_file(), rebuild=True)
    print(places.warehouse_file())


@app.command(epilog="Example: headstream check")
def check() -> None:
    """Check every artifact, the studies, the warehouse and the environment; exit code 1 if something is wrong."""
    from headstream.flows.store_commands import print_check

    print_check()


@app.command(epilog="Example: headstream gc --dry-run")
def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would be removed.")] = False,
    days: Annotated[
        float,
        typer.Option(min=0, help="Keep what runs used within this many days: interrupted ones may still need it."),
    ] = 7.0,
) -> None:
    """Remove artifacts that no study's last run needs."""
    from headstream.flows.store_commands import remove_unneeded

    remove_unneeded(days, dry_run)


@app.command(epilog="Example: headstream up --port 4200")
def up(
    host: Annotated[
        str, typer.Option(help="Address that the server listens on; anyone who can reach it can run code here.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the server and its pages.")] = 4200,
    database_url: Annotated[
        str | None,
        typer.Option(envvar="HEADSTREAM_DATABASE_URL", help="Postgres for Prefect's server; default: SQLite."),
    ] = None,
) -> None:
    """Run Prefect's server, a worker and the scheduled deployments until Ctrl-C."""
    choose_prefect_home(places.prefect_folder())
    from headstream.flows.up_command import serve

    serve(host, port, database_url)


def _load(name_or_path: str) -> tuple["Study", "StudyFile"]:
    from headstream.tasks.studies.known_studies import find_study
    from headstream.tasks.study.schema import read_study

    file = find_study(name_or_path)
    if file.note:
        _say(file.note)
    return read_study(file), file


def _name_of(name_or_path: str) -> str:
    """The name of a study whose results are asked for, even if its file has changed or is gone."""
    from headstream.tasks.studies.known_studies import known_studies

    return name_or_path if name_or_path in known_studies() else _load(name_or_path)[0].name


def _say_of(study: "Study", what: str) -> None:
    print(f"{study.name}: {what}", file=sys.stderr, flush=True)


def _say(text: str) -> None:
    from headstream.tasks.words.plain_text import terminal_safe, wrapped_for

    print(wrapped_for(sys.stderr, f"headstream: {terminal_safe(' '.join(text.split()))}"), file=sys.stderr)


def _print_lines(lines: Iterable[str]) -> None:
    from headstream.tasks.words.plain_text import wrapped_for

    print(*(wrapped_for(sys.stdout, line) for line in lines), sep="\n")


def main() -> None:
    """Run the command line, and turn each expected error into one line and an exit code."""
    isolate_child_processes()
    tolerate_warnings()
    configure_output()
    try:
        require_current_folder()
        with output_written():
            app()
    except (UserError, WorkError) as error:
        _say(str(error))
        sys.exit(2 if isinstance(error, UserError) else 1)
    except OSError as error:
        print(f"headstream: can't read or write a file: {error}. Correct that and run again.", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
