import io
import re

import pytest
from rich.console import Console
from waiting import until

from headstream.flows import progress_display
from headstream.flows.progress_display import shown_progress, study_picture
from headstream.flows.study_progress import StudyProgress
from headstream.tasks.graph.planning import PlannedArtifact
from headstream.tasks.progress import Event, publish

LONG = "n_layers=12 d_model=1024 normalization=layernorm feed_forward=gelu seed=17"


def study(*labels: str) -> StudyProgress:
    stages = ("training", "behaviour", "probes")
    return StudyProgress("quick", [PlannedArtifact(s, name, False, "", 60.0) for name in labels for s in stages], 2)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def picture(progress: StudyProgress, width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height)
    console.print(study_picture(progress, console))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_a_file_gets_plain_lines_not_one_for_every_event():
    file = io.StringIO()
    with shown_progress(study("seed=0", "seed=1"), file):
        publish(Event("training", "seed=0", 0.0))
        for i in range(50):
            publish(Event("training", "seed=0", i / 50, "loss 3.100 nats, 90,000 tokens/s"))
        publish(Event("training", "seed=0", 1.0))
        for stage in ("behaviour", "probes"):
            publish(Event(stage, "seed=0", 0.0))
            publish(Event(stage, "seed=0", 1.0))
        publish(Event("training", "seed=1", 0.35, kept=0.35))
    publish(Event("training", "seed=1", 0.5))
    lines = [line.split(maxsplit=1)[1] for line in file.getvalue().splitlines()]
    assert lines == [
        "seed=0: training",
        "seed=0: measuring",
        "seed=0: done",
        "seed=1 goes on from 35 %",
        "seed=1: training",
        "quick: 1 of 2 models done in 0 s",
    ]
    assert "\x1b" not in file.getvalue()


def test_a_file_is_told_that_work_goes_on_which_tells_nothing(monkeypatch):
    monkeypatch.setattr(progress_display, "PLAIN_SECONDS", 0.02)
    file = io.StringIO()
    with shown_progress(study("seed=0"), file):
        publish(Event("training", "seed=0", 0.3))
        until(lambda: file.getvalue().count("quick: 0 of 1 models done, about") > 2)


def test_a_terminal_ends_with_the_studys_line():
    file = Terminal()
    with shown_progress(study("seed=0"), file):
        publish(Event("training", "seed=0", 0.35, kept=0.35))
    assert "seed=0 goes on from 35 %" in file.getvalue()
    assert file.getvalue().endswith("quick: 0 of 1 models done in 0 s\n")


def test_each_model_in_work_has_a_line_by_its_name():
    progress = study("seed=0", "seed=1", "seed=2")
    progress.hear(Event("training", "seed=0", 0.35, "loss 3.100 nats, 90,000 tokens/s"))
    progress.hear(Event("training", "seed=1", 0.0, state="compiling"))
    lines = picture(progress, 80, 24)
    assert lines[0].startswith("quick: 0 of 3 models done, about ")
    assert lines[2].split() == ["seed=0", "training", "35", "%", "loss", "3.100", "nats,", "90,000", "tokens/s"]
    assert lines[3].split()[:4] == ["seed=1", "compiling", "for", "0"]
    assert lines[4] == "1 waiting"


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("height", [5, 24])
def test_many_models_fit_the_terminal(width, height):
    progress = study(*(f"{LONG}{i}" for i in range(70)))
    for i in range(50):
        progress.hear(Event("training", f"{LONG}{i}", 0.2, "loss 3.100 nats, 90,000 tokens/s"))
    lines = picture(progress, width, height)
    assert len(lines) <= height
    assert sum(bool(re.search("training +20 %", line)) for line in lines) == 50 - int(lines[-1].split()[0])
    assert max(map(len, lines)) <= width
    assert lines[-1].endswith("more in work, 20 waiting")
