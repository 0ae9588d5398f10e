"""The command `headstream watch`: shows a study that runs in another process."""

import time
from contextlib import nullcontext

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from headstream.flows.progress_display import PlainLines
from headstream.flows.study_progress import StudyProgress
from headstream.flows.watch_picture import scores_in_words, watch_picture
from headstream.tasks import places
from headstream.tasks.errors import UserError
from headstream.tasks.machines.stopping import StopRequested, exit_immediately, raising_on_signals
from headstream.tasks.report.explorer.model_files import EXPLORER
from headstream.tasks.storage.home_store import open_store
from headstream.tasks.studies.known_studies import find_study
from headstream.tasks.studies.remembered_studies import remembered
from headstream.tasks.studies.study_states import study_state
from headstream.tasks.study.schema import read_study
from headstream.tasks.watching.following import Following, followed
from headstream.tasks.watching.models_so_far import LossCurve, WatchedModel, training_losses
from headstream.tasks.watching.page_server import PageServer, served_page
from headstream.tasks.watching.run_snapshots import RunSnapshot, running_studies, snapshot_of
from headstream.tasks.words.plain_text import terminal_safe

REFRESH_SECONDS = 1.0
REFRESHES = 2  # of the picture, a second


def watch_study(study: str | None, wait: bool, port: int | None) -> int:
    """Show a study until its run ends, and serve its explorer on a port, if one is given. Returns the exit code.

    Raises:
        UserError: no study is running, or several are; or the named one hasn't run, and isn't to be waited for.
    """
    console = Console(highlight=False)
    if study and not wait and study not in running_studies():
        return _print_last_outcome(study, console)
    with raising_on_signals():
        try:
            name = _running(study, wait, console)
            with served_page(port) if port is not None else nullcontext() as server:
                code = _watch(name, server, console)
        except StopRequested as end:
            code = end.code
        except SystemExit:  # from rich, when nothing reads the output any more, as after `| head`
            code = 0
    exit_immediately(code)


def _running(study: str | None, wait: bool, console: Console) -> str:
    """The study to watch: the one that was named, or the one that is running.

    Raises:
        UserError: none is running, and none is to be waited for; or several are.
    """
    running = _running_among(study)
    if not running and not wait:
        raise UserError(
            "no study is running. Run one: `headstream run quick`; or wait for one: `headstream watch --wait`."
        )
    if not running:
        console.print(Text(f"Waiting for a run of {study or 'a study'}. Ctrl-C ends this."))
    while not running:
        time.sleep(REFRESH_SECONDS)
        running = _running_among(study)
    if len(running) > 1:
        raise UserError(
            f"several studies are running: {' and '.join(running)}. Name one: `headstream watch {running[0]}`."
        )
    return running[0]


def _running_among(study: str | None) -> list[str]:
    """The running studies, or of them only the named one."""
    return [name for name in running_studies() if study in (None, name)]


def _print_last_outcome(study: str, console: Console) -> int:
    """Print the outcome of the last run of a study that isn't running. Returns the exit code.

    Raises:
        UserError: it has not run yet, or not in its present form.
    """
    state = study_state(open_store(), study).state
    if snapshot_of(study) is None and state != "done":
        raise UserError(
            f"{study} is not running: {state}. Run it: `headstream run {study}`; or wait for somebody to run it:"
            f" `headstream watch {study} --wait`."
        )
    return _print_outcome(study, console)


def _print_outcome(study: str, console: Console) -> int:
    """Print the outcome of a study's last run. Returns the exit code: 1 if the run failed or was stopped."""
    snapshot = snapshot_of(study)
    if snapshot is None:
        outcome = f"{study} is done.\nReport: {places.report_folder(study) / 'report.md'}"
    elif snapshot.failure:
        outcome = f"{study}: its run failed: {terminal_safe(snapshot.failure)}"
    else:
        how_far = _progress_of(snapshot).how_far()
        outcome = f"{study}: its run was stopped{how_far}; `headstream run {study}` continues from there."
    console.print(Text(outcome), soft_wrap=True)
    return int(snapshot is not None)


def _watch(name: str, server: PageServer | None, console: Console) -> int:
    file = remembered(name) or find_study(name)  # as it was when it began, even if its file has changed since
    if server:
        console.print(Text(f"Explorer: {server.address}"))
    with followed(read_study(file), open_store(), server) as following:
        _follow_to_its_end(name, following, console)
    code = _print_outcome(name, console)
    if server and code == 0:
        server.show(places.report_folder(name) / EXPLORER, "done")
        console.print(Text(f"Explorer: {server.address}, until Ctrl-C"))
        while True:
            time.sleep(REFRESH_SECONDS)  # a pause would miss a signal that came just before it
    return code


def _progress_of(run: RunSnapshot) -> StudyProgress:
    """The progress in a snapshot; raises UserError if another release wrote it."""
    try:
        return StudyProgress.of_snapshot(run.progress)
    except (TypeError, LookupError):
        raise UserError(
            f"another release of Headstream runs {run.study}, and only that one can watch it. Use its `headstream"
            " watch`."
        ) from None


def _watched(progress: StudyProgress, label: str) -> WatchedModel:
    return WatchedModel(label, *(progress.key(label, stage) for stage in ("training", "tokens", "behaviour")))


def _follow_to_its_end(name: str, following: Following, console: Console) -> None:
    """Show a run until it ends: as a live picture in a terminal, as plain lines in a file."""
    run = snapshot_of(name)
    if run is None:
        return
    progress = _progress_of(run)
    lines = None if console.is_terminal else PlainLines(progress, console)
    if lines:
        lines.sum_up(progress)
    printed: dict[str, str] = {}

    def losses(label: str) -> LossCurve:
        return training_losses(open_store(), _watched(progress, label))

    def picture() -> Group:
        return watch_picture(progress, losses, following.scores, console)

    live = Live(console=console, get_renderable=picture, refresh_per_second=REFRESHES)
    with nullcontext() if lines else live:
        while run and run.is_running:
            progress = _progress_of(run)
            following.models = [_watched(progress, label) for label in progress.models]
            following.headline = progress.headline()
            if lines:
                lines.look(progress)
                for label, scores in following.scores.items():
                    words = scores_in_words(scores)
                    if printed.get(label) != words:
                        printed[label] = words
                        lines.say(f"{label}: {words}")
            time.sleep(REFRESH_SECONDS)
            run = snapshot_of(name)
