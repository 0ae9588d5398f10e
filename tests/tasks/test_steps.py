"""What a step does outside of a flow is tried again as in one."""

import pytest

from tasks import steps
from tasks.errors import WorkError
from tasks.study.corpus_config import CorpusConfig


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(steps, "RETRY_SECONDS", (0, 0))


def failing(*errors):
    """A step that meets these errors one after the other, and then has a result."""
    waiting = iter(errors)

    @steps.step("try")
    def work():
        for error in waiting:
            raise error
        return "done"

    return work


@pytest.mark.parametrize("n", [0, 1, 2])
def test_what_passes_is_tried_again(n):
    assert steps.alone(failing(*[OSError("busy")] * n)) == "done"


def test_what_does_not_pass_is_told():
    with pytest.raises(OSError, match="busy"):
        steps.alone(failing(*[OSError("busy")] * 3))
    with pytest.raises(WorkError, match="diverged"):
        steps.alone(failing(WorkError("diverged")))


def test_text_that_changes_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADSTREAM_HOME", str(tmp_path))
    file = tmp_path / "text" / "a.txt"
    file.parent.mkdir()
    file.write_text("\n".join(f"word number {n}" for n in range(900)))
    write, texts = steps.write_corpus, iter(["\n".join(f"another line, {n}" for n in range(700))])

    def write_and_change(*arguments, **options):
        facts = write(*arguments, **options)
        file.write_text(next(texts, file.read_text()))
        return facts

    monkeypatch.setattr(steps, "write_corpus", write_and_change)
    corpus = steps.alone(steps.read_corpus, CorpusConfig(paths=(str(file.parent),), document_bytes=256))
    assert corpus.manifest.facts["bytes"] == len(file.read_text())
