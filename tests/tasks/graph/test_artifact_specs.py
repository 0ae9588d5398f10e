"""What gets a new key when something changes: the table of tasks/storage/README.md, and content that stays the same."""

import re
import shutil
from pathlib import Path

import pytest
from tiny import tiny_text

from headstream.models.architecture import Architecture
from headstream.models.architecture_config import LATER
from headstream.tasks.graph import artifact_specs
from headstream.tasks.graph.artifact_specs import RESOURCES, analysis_spec, corpus_spec, tokens_spec, training_spec
from headstream.tasks.places import ROOT
from headstream.tasks.storage.artifact import Artifact
from headstream.tasks.storage.code_version import reached_modules
from headstream.tasks.storage.store import Store
from headstream.tasks.study.analyses import ANALYSES
from headstream.tasks.study.analysis_config import AnalysisConfig
from headstream.tasks.study.corpus_config import CorpusConfig
from headstream.tasks.study.schema import Study
from headstream.tasks.study.stages import STAGES, TOKENS
from headstream.tasks.study.tokenizer_config import TokenizerConfig
from headstream.tasks.study.training_config import TrainingConfig
from headstream.tasks.text.corpus_writing import write_corpus
from headstream.tasks.text.token_writing import write_tokens

README = ROOT / "tasks" / "storage" / "README.md"
ROW = re.compile(r"\| `(?P<file>[\w/.-]+)` \| [^|]+ \| (?P<stages>[^|]+) \|")
TOPS = {stage.name: stage.module for stage in STAGES.values()}
TABLE = {row["file"]: row["stages"].strip() for row in ROW.finditer(README.read_text())}
CELL = Study(name="s", model={"d_model": 8, "n_heads": 2, "n_ctx": 8}, training={"tokens": 64}).cells[0]


def stages_that_read(file: str) -> set[str]:
    """The stages whose keys change with a file's content."""
    path = ROOT / file
    assert path.is_file()
    if path.suffix != ".py":
        return {"report"} if any(path in ROOT.glob(pattern) for pattern in RESOURCES) else set()
    module = "headstream." + file.removesuffix(".py").replace("/", ".")
    found = {stage for stage, top in TOPS.items() if module in reached_modules(top)}
    return found | ({"report"} if module in reached_modules("headstream.tasks.results.claims") else set())


@pytest.mark.parametrize("file", TABLE)
def test_an_edit_gives_new_keys_to_the_stages_of_the_table(file):
    said = TABLE[file]
    analyses = {"every analysis": set(ANALYSES), "none": set(), "every stage": set(STAGES)}
    wanted = set().union(*(analyses.get(name, {name}) for name in said.split(", ")))
    assert stages_that_read(file) == wanted


def test_the_table_has_every_kind_of_file():
    kinds = (
        "text/documents",
        "text/corpus_",
        "text/token_",
        "measuring/",
        "models/heads",
        "models/circuits",
        "_config.py",
    )
    kinds += ("report/sections", "report/figures", "data/views", "reports/queries")
    for kind in kinds:
        assert any(kind in file for file in TABLE), kind


def test_no_stage_imports_another():
    tops = {stage: top for stage, top in TOPS.items() if stage != "report"}
    for stage, top in tops.items():
        assert not (reached_modules(top).keys() - {top}) & {*tops.values()}, stage


def test_the_text_that_training_reads_is_known_by_its_tokens_alone():
    """Who trains or measures reads tokens, and knows neither corpora nor how tokens are written."""
    for stage in ("training", *ANALYSES):
        read = {
            module for module in reached_modules(STAGES[stage].module) if module.startswith("headstream.tasks.text.")
        }
        assert not read & {
            "headstream.tasks.text.documents",
            "headstream.tasks.text.corpus_reading",
            "headstream.tasks.text.token_writing",
        }


def made(store: Store, paths: Path, vocabulary: int = 270) -> tuple[Artifact, Artifact]:
    config, tokenizer = (
        CorpusConfig(paths=(str(paths),), validation_fraction=0.2),
        TokenizerConfig(vocabulary=vocabulary),
    )
    corpus = store.build(corpus_spec(config), lambda folder: write_corpus(config, folder))
    spec = tokens_spec(tokenizer, corpus)
    tokens = store.build(spec, lambda f: write_tokens(tokenizer, corpus.folder, f), incidental=TOKENS.incidental)
    return corpus, tokens


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path / "store")


def changed_code(monkeypatch, *stages: str) -> None:
    version = artifact_specs.code_version
    changed = {STAGES[stage].module for stage in stages}
    monkeypatch.setattr(artifact_specs, "code_version", lambda m: "changed" if m in changed else version(m))


def test_changed_code_that_reads_the_same_documents_leaves_tokens_where_they_are(store, monkeypatch):
    corpus, tokens = made(store, tiny_text())
    changed_code(monkeypatch, "corpus")
    again, same_tokens = made(store, tiny_text())
    assert again.folder != corpus.folder
    assert same_tokens == tokens


def test_changed_code_that_encodes_the_same_tokens_leaves_models_where_they_are(store, monkeypatch):
    _, tokens = made(store, tiny_text())
    trained = training_spec(CELL, tokens).key
    changed_code(monkeypatch, "corpus", "tokens")
    _, again = made(store, tiny_text())
    assert again.folder != tokens.folder
    assert training_spec(CELL, again).key == trained
    assert again.manifest.facts["corpus_id"] == tokens.manifest.facts["corpus_id"]


def test_the_same_text_in_other_places_is_the_same_to_models(store, tmp_path):
    shutil.copytree(tiny_text(), tmp_path / "moved")
    _, tokens = made(store, tiny_text())
    _, moved = made(store, tmp_path / "moved")
    assert moved.folder != tokens.folder
    assert moved.manifest.facts["source"] != tokens.manifest.facts["source"]
    assert training_spec(CELL, moved).key == training_spec(CELL, tokens).key


def test_other_text_or_another_tokenizer_is_another_model(store):
    keys = {
        training_spec(CELL, made(store, text, vocabulary)[1]).key
        for text, vocabulary in ((tiny_text(), 270), (tiny_text(), 280), (tiny_text(seed=1), 270))
    }
    assert len(keys) == 3


def test_training_again_to_the_same_weights_leaves_analyses_where_they_are(store, monkeypatch):
    _, tokens = made(store, tiny_text())

    def train(weights: bytes, model_id: str) -> Artifact:
        write = lambda folder: (folder / "w").write_bytes(weights) and {"model_id": model_id}  # noqa: E731
        return store.build(training_spec(CELL, tokens), write)

    def keys(training: Artifact) -> list[str]:
        return [
            analysis_spec(ANALYSES[stage], AnalysisConfig(), {"model": training, "tokens": tokens}).key
            for stage in ANALYSES
        ]

    first = train(b"w", "m")
    changed_code(monkeypatch, "training")
    same = train(b"w", "m")
    assert same.folder != first.folder
    assert keys(same) == keys(first)
    monkeypatch.undo()
    changed_code(monkeypatch, "training", "tokens")
    store.remove(same.folder)
    other = train(b"others", "n")
    assert not set(keys(other)) & set(keys(first))


def test_a_part_of_the_analysis_is_read_by_the_stage_of_its_name(store):
    _, tokens = made(store, tiny_text())
    training = store.build(training_spec(CELL, tokens), lambda folder: {"model_id": "m"})

    def keys(config: AnalysisConfig) -> dict[str, str]:
        return {
            stage: analysis_spec(ANALYSES[stage], config, {"model": training, "tokens": tokens}).key
            for stage in ANALYSES
        }

    before = keys(AnalysisConfig())
    for stage in ANALYSES:
        part = ANALYSES[stage].part_of(AnalysisConfig())
        field = next(name for name, value in part if isinstance(value, int))
        other = AnalysisConfig.model_validate({stage.replace("-", "_"): {field: getattr(part, field) + 1}})
        after = keys(other)
        assert {name for name in before if after[name] != before[name]} == {stage}


def test_every_field_of_a_study_that_changes_numbers_is_in_a_spec(store):
    """So one that is added or given another default changes keys."""
    corpus, tokens = made(store, tiny_text())
    training = store.build(training_spec(CELL, tokens), lambda folder: {"model_id": "m"})
    config, numerics = training.manifest.config, {"device", "precision", "compile", "threads"}
    assert config["architecture"].keys() == Architecture.model_fields.keys() - {*LATER}  # which are there once chosen
    assert config["training"].keys() == TrainingConfig.model_fields.keys() - numerics - {"interventions"}  # likewise
    assert corpus.manifest.config["corpus"].keys() == CorpusConfig.model_fields.keys()
    assert tokens.manifest.config.keys() == TokenizerConfig.model_fields.keys()
    for stage in ANALYSES:
        slice_ = analysis_spec(ANALYSES[stage], AnalysisConfig(), {"model": training, "tokens": tokens}).config
        assert slice_["analysis"].keys() == type(ANALYSES[stage].part_of(AnalysisConfig())).model_fields.keys()


def test_analyses_are_keyed_by_the_model_whose_name_is_in_their_rows(store):
    _, tokens = made(store, tiny_text())
    one, other = (
        store.build(training_spec(CELL, tokens).__class__("training", v, {}, {}, {}), lambda f, v=v: {"model_id": v})
        for v in ("a", "b")
    )
    assert one.digest == other.digest
    specs = [
        analysis_spec(ANALYSES["probes"], AnalysisConfig(), {"model": training, "tokens": tokens})
        for training in (one, other)
    ]
    assert specs[0].key != specs[1].key


def test_analyses_on_a_gpu_are_others_than_those_on_the_cpu(store):
    _, tokens = made(store, tiny_text())
    training = store.build(training_spec(CELL, tokens), lambda folder: {"model_id": "m"})
    here, there = (
        analysis_spec(ANALYSES["probes"], AnalysisConfig(device=device), {"model": training, "tokens": tokens})
        for device in ("cpu", "cuda")
    )
    assert here.key != there.key
    assert here.config == there.config
