import io

import pytest

from headstream.tasks.words.plain_text import wrapped_for

PATH = "/home/somebody/.local/share/headstream/reports/generated/a-study-of-many-heads/report.md"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")


def test_lines_break_between_words_on_a_terminal():
    line = "- induction_random_period of its best head is 0.44, K-composition 0.93; repeat_gain is 2.36 nats."
    shown = wrapped_for(Terminal(), line).splitlines()
    assert max(map(len, shown)) <= 40
    assert " ".join(part.strip() for part in shown) == line
    assert all(part.startswith("  ") for part in shown[1:])


def test_a_path_stays_whole_and_a_file_gets_the_line_as_it_is():
    assert PATH in wrapped_for(Terminal(), f"Report: {PATH}").splitlines()
    assert wrapped_for(io.StringIO(), f"Report: {PATH} and so on") == f"Report: {PATH} and so on"
