import io

from rich.console import Console

from flows.progress_display import shown_progress
from tasks.progress import Event, publish


def shown(terminal: bool) -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=120)
    with shown_progress(console):
        publish(Event("training", "2L4H-s0", 0.0))
        publish(Event("training", "2L4H-s0", 0.5, "loss 3.100 nats, 90,000 tokens/s, 30 s left"))
        publish(Event("training", "2L4H-s0", 1.0, "done"))
    publish(Event("training", "unheard", 0.5))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_file_gets_plain_lines_not_one_for_every_event():
    lines = shown(terminal=False).strip().splitlines()
    assert len(lines) == 2  # it began and it ended; what came between was too soon to repeat
    assert "started" in lines[0]
    assert lines[1].endswith("done")


def test_a_terminal_gets_bars():
    text = shown(terminal=True)
    assert "2L4H-s0" in text
    assert "100%" in text
    assert "unheard" not in text
