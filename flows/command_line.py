"""The command `headstream`. Heavy imports are inside commands, so that --help answers at once."""

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tasks.errors import UserError, WorkError

if TYPE_CHECKING:
    from tasks.study.schema import Study

app = typer.Typer(
    name="headstream",
    help="Train families of small transformers and work out what every attention head does.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
StudyArgument = Annotated[str, typer.Argument(help="Name of a study that ships, or path of a study file.")]
Format = Annotated[Literal["table", "csv", "json", "markdown"], typer.Option(help="How rows are printed.")]


@app.command(epilog="Example: headstream run quick")
def run(
    study: StudyArgument,
    jobs: Annotated[int | None, typer.Option(min=1, help="Models made at once; default: one per core.")] = None,
    runner: Annotated[
        Literal["threads", "ray"] | None,
        typer.Option(help="Where models are made: threads here, or a Ray cluster; default: what the study says."),
    ] = None,
) -> None:
    """Make whatever a study still lacks, then print its answer and the path of its report."""
    from tasks.machines.quiet_output import output_to_log
    from tasks.machines.stopping import stopping_at_signals

    with stopping_at_signals() as words:
        from tasks.finished_study import found_finished  # imports torch

        loaded = _load(study).placed(runner, jobs)
        if lines := found_finished(loaded):
            print(f"{loaded.name}: nothing was missing", file=sys.stderr)
        else:
            with output_to_log(words) as terminal:
                from flows.run_command import run_with_progress  # imports Prefect

                lines = run_with_progress(loaded, terminal, words)
        print(*lines, sep="\n")


@app.command(epilog="Example: headstream plan quick")
def plan(study: StudyArgument) -> None:
    """Show what `run` would do and why, how long it would take, and which claims the study can decide."""
    from flows.plan_command import print_plan

    print_plan(_load(study))


@app.command(epilog='Example: headstream sql "select * from induction_by_depth"')
def sql(
    query: Annotated[str | None, typer.Argument(help="One SELECT; without it, tables and views are listed.")] = None,
    format: Format = "table",
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds after which the query is stopped.")] = 30.0,
) -> None:
    """Query the results in SQL; queries only read, and reach nothing outside the warehouse."""
    from tasks import places
    from tasks.results.output_formats import format_table
    from tasks.results.sql import list_tables, run_sql

    warehouse = places.warehouse_file()
    rows = run_sql(warehouse, query, timeout, lossless=True) if query else list_tables(warehouse)
    print(format_table(rows, format))


@app.command(epilog="Example: headstream claims quick")
def claims(study: StudyArgument, format: Format = "table") -> None:
    """Show what a study says of each claim: findings first, then descriptions, then self-checks in one line."""
    from tasks import places
    from tasks.making import open_store
    from tasks.results.claims import banner_of, claims_of
    from tasks.results.output_formats import format_table
    from tasks.results.warehouse import build_warehouse

    name = _load(study).name
    build_warehouse(open_store(), places.warehouse_file())  # a claim may be new
    in_words = format in ("table", "markdown")
    rows = claims_of(places.warehouse_file(), name, in_words)
    if in_words and (banner := banner_of(places.warehouse_file(), name)):
        print(f"{banner}\n")
    print(format_table(rows, format))


@app.command(epilog="Example: headstream report quick")
def report(study: StudyArgument) -> None:
    """Write a study's report again from the warehouse, and print its path."""
    from tasks import steps

    print(steps.report_again(_load(study).name))


@app.command(epilog="Example: headstream diff quick heads")
def diff(
    first: Annotated[str, typer.Argument(help="Name of a study that has run.")],
    second: Annotated[str, typer.Argument(help="Name of another study that has run.")],
) -> None:
    """Show what differs between two studies: settings, metrics beyond their error bars, verdicts on claims."""
    from flows.diff_command import print_changes

    print_changes(first, second)


@app.command(epilog="Example: headstream studies")
def studies() -> None:
    """List the studies that ship, and how much of each has run."""
    from flows.plan_command import print_studies

    print_studies()


@app.command(epilog="Example: headstream index")
def index() -> None:
    """Rebuild the warehouse from the store, and print its path."""
    from tasks import places
    from tasks.making import open_store
    from tasks.results.warehouse import build_warehouse

    build_warehouse(open_store(), places.warehouse_file(), anew=True)
    print(places.warehouse_file())


@app.command(epilog="Example: headstream check")
def check() -> None:
    """Verify every artifact, the studies, the warehouse and the environment; exit code 1 if something is wrong."""
    from flows.store_commands import print_check

    print_check()


@app.command(epilog="Example: headstream gc --dry-run")
def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    days: Annotated[
        float,
        typer.Option(min=0, help="Keep what a run used within this many days; interrupted runs may still need it."),
    ] = 7.0,
) -> None:
    """Remove artifacts that no study's last run needs."""
    from flows.store_commands import remove_unneeded

    remove_unneeded(days, dry_run)


@app.command(epilog="Example: headstream up --port 4200")
def up(
    host: Annotated[
        str, typer.Option(help="Address that the server listens on; whoever reaches it can run code here.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the server and its pages.")] = 4200,
    database_url: Annotated[
        str | None,
        typer.Option(envvar="HEADSTREAM_DATABASE_URL", help="Postgres for Prefect's server; default: SQLite."),
    ] = None,
) -> None:
    """Run Prefect's server, a worker and the scheduled deployments until Ctrl-C."""
    from flows.up_command import serve

    serve(host, port, database_url)


def _load(name_or_path: str) -> "Study":
    from tasks.study.schema import parse_study
    from tasks.study.sources import read_study_file

    return parse_study(*read_study_file(name_or_path))


def main() -> None:
    """Run the command line, and turn each expected error into one line and an exit code."""
    try:
        app()
    except (UserError, WorkError) as error:
        from tasks.plain_text import terminal_safe

        print(f"headstream: {terminal_safe(' '.join(str(error).split()))}", file=sys.stderr)
        sys.exit(2 if isinstance(error, UserError) else 1)
    except BrokenPipeError:
        sys.exit(0)
    except OSError as error:
        print(
            f"headstream: files must be readable and writable, got: {error}. Correct that and repeat.", file=sys.stderr
        )
        sys.exit(1)


if __name__ == "__main__":
    main()
