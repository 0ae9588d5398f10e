"""The command `headstream`. Heavy imports are inside commands, so that --help answers at once."""

import sys
from typing import Annotated, Literal, Optional

import typer

from tasks.errors import UserError, WorkError

app = typer.Typer(
    name="headstream",
    help="Train families of small transformers and work out what every attention head does.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
StudyName = Annotated[str, typer.Argument(metavar="STUDY", help="A study that ships, or the path of a study file.")]


@app.command(epilog="Example: headstream run quick")
def run(
    study: StudyName,
    jobs: Annotated[Optional[int], typer.Option(min=1, help="Models at once; default: one a core.")] = None,  # noqa: UP045
    runner: Annotated[
        Optional[Literal["threads", "ray"]],  # noqa: UP045
        typer.Option(help="Where models are made: threads here, or a Ray cluster; default: the study says."),
    ] = None,
) -> None:
    """Run what a study still lacks, then say where its report is."""
    loaded = _load(study).placed(runner, jobs)
    from flows.prefect_server import starting_server

    with starting_server() as server:
        from flows.run_command import run_and_show  # imports torch, while the server starts

        run_and_show(loaded, server)


@app.command(epilog="Example: headstream plan quick")
def plan(study: StudyName) -> None:
    """Show what `run` would do, what is already there and why, time and disk, and what the study could decide."""
    from flows.plan_command import print_plan

    print_plan(_load(study))


@app.command(epilog='Example: headstream sql "select * from induction_by_depth"')
def sql(
    query: Annotated[Optional[str], typer.Argument(help="One SELECT; without it, the tables are listed.")] = None,  # noqa: UP045
    format: Annotated[
        Literal["table", "csv", "json", "markdown"], typer.Option(help="How rows are printed.")
    ] = "table",
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds after which the query is stopped.")] = 30.0,
) -> None:
    """Ask the results in SQL: read-only, and without reach outside the warehouse."""
    from tasks import places
    from tasks.results.output_formats import format_table
    from tasks.results.sql import list_tables, run_sql

    warehouse = places.warehouse_file()
    rows = run_sql(warehouse, query, timeout_seconds=timeout) if query else list_tables(warehouse)
    print(format_table(rows, format))


@app.command(epilog="Example: headstream claims quick")
def claims(
    study: StudyName,
    format: Annotated[
        Literal["table", "csv", "json", "markdown"], typer.Option(help="How rows are printed.")
    ] = "table",
) -> None:
    """Show which claims a study confirms and which it refutes, or why it can't tell."""
    from tasks import places
    from tasks.results.claims import claims_of
    from tasks.results.output_formats import format_table
    from tasks.results.warehouse import build_warehouse
    from tasks.storage.store import Store

    name = _load(study).name
    build_warehouse(Store(places.store_folder()), places.warehouse_file())  # a claim may be new
    in_words = format in ("table", "markdown")
    print(format_table(claims_of(places.warehouse_file(), name, in_words), format))


@app.command(epilog="Example: headstream report quick")
def report(study: StudyName) -> None:
    """Write a study's report again from the warehouse."""
    from flows.run_command import report_again

    print(report_again(_load(study)))


@app.command(epilog="Example: headstream diff quick heads")
def diff(
    first: Annotated[str, typer.Argument(metavar="STUDY", help="A study that has run.")],
    second: Annotated[str, typer.Argument(metavar="STUDY", help="Another one.")],
) -> None:
    """Show what differs between two studies: settings, metrics beyond their error bars, verdicts on claims."""
    from flows.diff_command import print_changes

    print_changes(first, second)


@app.command(epilog="Example: headstream studies")
def studies() -> None:
    """List the studies there are, and the state of each."""
    from flows.plan_command import print_studies

    print_studies()


@app.command(epilog="Example: headstream index")
def index() -> None:
    """Build the warehouse again from the store."""
    from tasks import places
    from tasks.results.warehouse import build_warehouse
    from tasks.storage.store import Store

    build_warehouse(Store(places.store_folder()), places.warehouse_file(), anew=True)
    print(places.warehouse_file())


@app.command(epilog="Example: headstream check")
def check() -> None:
    """Verify every result, the studies, the warehouse and the environment; exit code 1 if something is wrong."""
    from flows.store_commands import print_check

    print_check()


@app.command(epilog="Example: headstream gc --dry-run")
def gc(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    days: Annotated[
        float, typer.Option(min=0, help="Keep what a run used in the last days: one that was interrupted needs it.")
    ] = 7.0,
) -> None:
    """Remove results that no study's last run needs."""
    from flows.store_commands import remove_unneeded

    remove_unneeded(days, dry_run)


@app.command(epilog="Example: headstream up --port 4200")
def up(
    host: Annotated[str, typer.Option(help="Where the server listens; anybody who reaches it can run code here.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the server and its pages.")] = 4200,
    database_url: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(envvar="HEADSTREAM_DATABASE_URL", help="Postgres for Prefect's server; default: SQLite."),
    ] = None,
) -> None:
    """Run Prefect's server, a worker and the scheduled deployments until Ctrl-C."""
    from flows.up import up as run_all

    run_all(host, port, database_url)


def _load(name_or_path: str):  # type: ignore[no-untyped-def]
    from tasks.study.schema import parse_study
    from tasks.study.sources import read_study_file

    return parse_study(*read_study_file(name_or_path))


def main() -> None:
    """Run the command line; errors become one line and an exit code."""
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
            f"headstream: files must be there to read and write, got: {error}. Correct that, and repeat.",
            file=sys.stderr,
        )
        sys.exit(1)
    except KeyboardInterrupt:
        print("headstream: stopped; `headstream run` goes on from here.", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
