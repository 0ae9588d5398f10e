"""The text of a study."""

from headstream.tasks.steps import prefect_step, text_steps
from headstream.tasks.study.corpus_config import CorpusConfig


def test_text_that_changes_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(prefect_step, "RETRY_SECONDS", (0, 0))
    monkeypatch.setenv("HEADSTREAM_HOME", str(tmp_path))
    file = tmp_path / "text" / "a.txt"
    file.parent.mkdir()
    file.write_text("\n".join(f"word number {n}" for n in range(900)))
    write, texts = text_steps.write_corpus, iter(["\n".join(f"another line, {n}" for n in range(700))])

    def write_and_change(*arguments, **options):
        facts = write(*arguments, **options)
        file.write_text(next(texts, file.read_text()))
        return facts

    monkeypatch.setattr(text_steps, "write_corpus", write_and_change)
    corpus = prefect_step.alone(text_steps.read_corpus, CorpusConfig(paths=(str(file.parent),), document_bytes=256))
    assert corpus.manifest.facts["bytes"] == len(file.read_text())
