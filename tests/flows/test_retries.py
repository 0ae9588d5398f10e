"""Steps are tried again after what may pass, and only then."""

import pytest
from prefect import flow

from headstream.flows.study import make_text
from headstream.tasks.errors import WorkError
from headstream.tasks.graph.study_graph import study_graph
from headstream.tasks.steps import prefect_step, study_steps
from headstream.tasks.study.schema import parse_study
from headstream.tasks.text import corpus_writing

pytestmark = pytest.mark.usefixtures("prefect_server", "home")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(prefect_step, "RETRY_SECONDS", (0, 0))


def run_failing(*errors: Exception) -> str:
    """What a step has for a result that meets these errors one after the other."""
    waiting = iter(errors)

    @prefect_step.prefect_step("try")
    def work() -> str:
        for error in waiting:
            raise error
        return "done"

    return flow(lambda: work())()


@pytest.mark.parametrize("n", [0, 2])
def test_what_passes_is_tried_again(n):
    assert run_failing(*[OSError("busy")] * n) == "done"


def test_what_does_not_pass_is_told():
    with pytest.raises(OSError, match="busy"):
        run_failing(*[OSError("busy")] * 3)
    with pytest.raises(WorkError, match="diverged"):
        run_failing(WorkError("diverged"))


def test_text_that_changes_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    file = tmp_path / "text" / "a.txt"
    file.parent.mkdir()
    file.write_text("\n".join(f"word number {n}" for n in range(900)))
    write, texts = corpus_writing.write_corpus, iter(["\n".join(f"another line, {n}" for n in range(700))])

    def write_and_change(*arguments, **options):
        facts = write(*arguments, **options)
        file.write_text(next(texts, file.read_text()))
        return facts

    monkeypatch.setattr(corpus_writing, "write_corpus", write_and_change)
    corpus = {"paths": [str(file.parent)], "document_bytes": 256}
    steps = study_graph(parse_study("s", {"name": "s", "corpus": corpus, "tokenizer": {"vocabulary": 270}}))
    monkeypatch.setattr(study_steps, "make", study_steps.make.with_options(retry_delay_seconds=0))
    made = flow(lambda: make_text(steps))()
    assert made["corpus", "documents"].manifest.facts["bytes"] == len(file.read_text())
