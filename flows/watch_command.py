"""The command `headstream watch`: a study that runs in another process, as far as it is."""

import signal
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
from headstream.tasks.graph.making import open_store
from headstream.tasks.machines.stopping import StopRequested, exit_immediately, raising_on_signals
from headstream.tasks.report.explorer.model_files import EXPLORER
from headstream.tasks.studies.known_studies import find_study
from headstream.tasks.studies.remembered_studies import remembered
from headstream.tasks.studies.study_states import study_state
from headstream.tasks.study.schema import read_study
from headstream.tasks.watching.following import Following, followed
from headstream.tasks.watching.models_so_far import Losses, WatchedModel, training_losses
from headstream.tasks.watching.page_server import PageServer, served_page
from headstream.tasks.watching.run_snapshots import RunSnapshot, running_studies, snapshot_of
from headstream.tasks.words.plain_text import terminal_safe

LOOK_SECONDS = 1.0
REFRESHES = 2  # of the picture, a second


def watch_study(study: str | None, wait: bool, port: int | None) -> int:
    """Show a study until its run ends, and its explorer on a port, if one is given; the exit code.

    Raises:
        UserError: no study runs, or several do; or the one asked for hasn't run, and isn't to be waited for.
    """
    console = Console(highlight=False)
    if study and not wait and study not in running_studies():
        return _say_last(study, console)
    with raising_on_signals():
        try:
            name = _running(study, wait, console)
            with served_page(port) if port is not None else nullcontext() as server:
                code = _watch(name, server, console)
        except StopRequested as end:
            code = end.code
        except SystemExit:  # rich's, when nobody reads any more, as after `| head`
            code = 0
    exit_immediately(code)


def _running(study: str | None, wait: bool, console: Console) -> str:
    """The study to watch: the one that is asked for, or that is running.

    Raises:
        UserError: none is running, and none is to be waited for; or several are.
    """
    said = False
    while not (running := [name for name in running_studies() if study in (None, name)]):
        if not wait:
            raise UserError(
                "a study must be running to be watched, got none. Run one: `headstream run quick`; or wait for one:"
                " `headstream watch --wait`."
            )
        if not said:
            console.print(Text(f"Waiting for a run of {study or 'a study'}. Ctrl-C ends this."))
            said = True
        time.sleep(LOOK_SECONDS)
    if len(running) > 1:
        raise UserError(
            f"watch must be told which study, got none, while {' and '.join(running)} are running. Name one:"
            f" `headstream watch {running[0]}`."
        )
    return running[0]


def _say_last(study: str, console: Console) -> int:
    """Say how a study ended that isn't running; the exit code.

    Raises:
        UserError: it has not run yet, or not as it is now.
    """
    state = study_state(open_store(), study).state
    if snapshot_of(study) is None and state != "done":
        raise UserError(
            f"a study must be running to be watched, got {study}, which isn't: {state}. Run it:"
            f" `headstream run {study}`; or wait until somebody does: `headstream watch {study} --wait`."
        )
    return _say_end(study, console)


def _say_end(study: str, console: Console) -> int:
    """Say how a study's last run ended; exit code 1 if that was not well."""
    left = snapshot_of(study)
    if left is None:
        said = f"{study} is done.\nReport: {places.report_folder(study) / 'report.md'}"
    elif left.failure:
        said = f"{study}: its run failed: {terminal_safe(left.failure)}"
    else:
        how_far = _progress_of(left).how_far()
        said = f"{study}: its run was stopped{how_far}; `headstream run {study}` goes on from there."
    console.print(Text(said), soft_wrap=True)
    return int(left is not None)


def _watch(name: str, server: PageServer | None, console: Console) -> int:
    file = remembered(name) or find_study(name)  # as it was when it began, whatever has become of its file
    if server:
        console.print(Text(f"Explorer: {server.address}"))
    with followed(read_study(file), open_store(), server) as following:
        _follow_to_its_end(name, following, console)
    code = _say_end(name, console)
    if server and code == 0:
        server.show(places.report_folder(name) / EXPLORER, "done")
        console.print(Text(f"Explorer: {server.address}, until Ctrl-C"))
        while True:
            signal.pause()
    return code


def _progress_of(run: RunSnapshot) -> StudyProgress:
    """Raises UserError when a run of another release left it."""
    try:
        return StudyProgress.of_snapshot(run.told)
    except (TypeError, LookupError):
        raise UserError(
            f"a run must be watched by the release of Headstream that runs it, got {run.study}, which another one does."
            " Watch it with that."
        ) from None


def _watched(progress: StudyProgress, label: str) -> WatchedModel:
    return WatchedModel(label, *(progress.key(label, stage) for stage in ("training", "tokens", "behaviour")))


def _follow_to_its_end(name: str, following: Following, console: Console) -> None:
    """Show a run until it ends: a live picture in a terminal, plain lines in a file."""
    run = snapshot_of(name)
    if run is None:
        return
    progress = _progress_of(run)
    lines = None if console.is_terminal else PlainLines(progress, console)
    if lines:
        lines.sum_up(progress)
    said: dict[str, str] = {}

    def losses(label: str) -> Losses:
        return training_losses(open_store(), _watched(progress, label))

    def picture() -> Group:
        return watch_picture(progress, losses, following.scores, console)

    live = Live(console=console, get_renderable=picture, refresh_per_second=REFRESHES)
    with nullcontext() if lines else live:
        while (run := snapshot_of(name)) and run.goes_on:
            progress = _progress_of(run)
            following.models = [_watched(progress, label) for label in progress.models]
            following.headline = progress.headline()
            if lines:
                lines.look(progress)
                for label, scores in following.scores.items():
                    if said.get(label) != (words := scores_in_words(scores)):
                        said[label] = words
                        lines.say(f"{label}: {words}")
            time.sleep(LOOK_SECONDS)
