"""The stage that probes a model: its tables, what it must find, and settings that it must get through."""

import random
from hashlib import sha256

import pyarrow.parquet as pq
import pytest
import torch
from planted import BOS, SHARP, attention_of, blank_model, dimensions
from tiny import tiny_tokens
from written_text import write_text

from headstream.models.architecture import Architecture
from headstream.models.transformer import Transformer
from headstream.tasks.errors import UserError
from headstream.tasks.measuring.probe_labels import PYTHON_TASKS, TASKS
from headstream.tasks.measuring.probes import measure_probes
from headstream.tasks.measuring.trained_model import TrainedModel
from headstream.tasks.results.tables import table_schema
from headstream.tasks.study.analyses.probes_config import ProbesConfig
from headstream.tasks.text.corpus_writing import text_split
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.training.checkpoints import save_checkpoint, write_model_card

CONFIG = ProbesConfig(train_tokens=3500, selection_tokens=1500, test_tokens=2000)
ANY_TEXT = {"seen_before", "distance_bucket", "line_position", "sentence_position"}


@pytest.fixture(scope="module")
def tokens():
    return Tokens.open(tiny_tokens())


def random_model(vocabulary, **options):
    architecture = Architecture(**{"n_layers": 2, "n_heads": 2, "d_model": 10, "n_ctx": 64, **options})
    return Transformer(architecture, vocabulary).initialize(torch.Generator().manual_seed(0))


def measure(folder, model, tokens_folder=None, config=CONFIG, on_progress=lambda fraction: None, model_id="m"):
    save_checkpoint(folder, model, 3)
    write_model_card(folder, model, 100)
    return measure_probes(config, TrainedModel(model_id, folder, tokens_folder or tiny_tokens(), folder, on_progress))


def rows_of(folder, name):
    return pq.read_table(folder / f"{name}.parquet").to_pylist()


def probes_of(folder, task):
    return {row["site"]: row for row in rows_of(folder, "probes") if row["task"] == task}


@pytest.fixture(scope="module")
def measured(tmp_path_factory, tokens):
    folder, heard = tmp_path_factory.mktemp("probes"), []
    measure(folder, random_model(tokens.vocabulary), on_progress=heard.append)
    return folder, heard


def test_every_table_has_every_column(measured):
    folder, heard = measured
    for name in ("probes", "probe_tasks"):
        table = pq.read_table(folder / f"{name}.parquet")
        assert table.schema.names == table_schema(name).names
        assert set(table["model_id"].to_pylist()) == {"m"}
    probes = rows_of(folder, "probes")
    assert {row["task"] for row in probes} == ANY_TEXT
    assert all(row["converged"] for row in probes)
    assert len(probes) == 4 * (4 + 3)
    assert heard == sorted(heard)
    assert heard[-1] == 1


def test_sites_have_their_layers_and_heads(measured):
    folder, _ = measured
    places = {row["site"]: (row["layer"], row["head"]) for row in rows_of(folder, "probes")}
    heads = {"L0H0": (0, 0), "L0H1": (0, 1), "L1H0": (1, 0), "L1H1": (1, 1)}
    assert places == heads | {"R0": (0, None), "R1": (1, None), "R2": (2, None)}


def test_numbers_are_fractions_that_fit_together(measured):
    folder, _ = measured
    rows = rows_of(folder, "probes")
    for row in rows:
        accuracy, majority, by_type, control = (
            row[f"{kind}accuracy"] for kind in ("", "majority_", "type_", "control_")
        )
        assert all(0 <= number <= 1 for number in (accuracy, majority, by_type, control))
        assert row["selectivity"] == pytest.approx(accuracy - control)
        assert row["gain"] == pytest.approx(accuracy - max(majority, by_type, control))
        assert row["gain_low"] < row["gain"] < row["gain_high"]
        assert row["gain_sem"] > 0
        assert row["selectivity_sem"] > row["control_sem"] > 0
    for baseline in ("majority_accuracy", "type_accuracy"):
        assert len({(row["task"], row[baseline]) for row in rows}) == 4


def test_tasks_that_the_text_does_not_have_are_listed_with_a_reason(measured):
    folder, _ = measured
    tasks = {row["task"]: row for row in rows_of(folder, "probe_tasks")}
    assert set(tasks) == set(TASKS)
    for name, row in tasks.items():
        if name in ANY_TEXT:
            assert row["why_absent"] is None
            assert row["n_classes"] >= 2
            assert 100 <= row["n_train"] < 3500 + 63
            assert 100 <= row["n_selection"] < 1500 + 63
            assert 100 <= row["n_test"] < 2000 + 63
            assert 1 < row["n_test_documents"] < 30
        else:
            assert row["why_absent"]
            sizes = ("n_classes", "n_train", "n_selection", "n_test", "n_test_documents")
            assert all(row[size] is None for size in sizes)


def test_the_same_model_measures_the_same(measured, tmp_path, tokens):
    folder, _ = measured
    measure(tmp_path, random_model(tokens.vocabulary))
    for name in ("probes", "probe_tasks"):
        assert (tmp_path / f"{name}.parquet").read_bytes() == (folder / f"{name}.parquet").read_bytes()


def test_every_model_has_control_labels_of_its_own_whatever_it_is_called(measured, tmp_path, tokens):
    folder, _ = measured
    model = random_model(tokens.vocabulary)
    measure(tmp_path, model, model_id="other")
    for row, same in zip(rows_of(folder, "probes"), rows_of(tmp_path, "probes"), strict=True):
        assert row | {"model_id": "other"} == same
    model.W_U_free.data *= 2  # no head and no stream sees it
    measure(tmp_path, model)
    rows, others = rows_of(folder, "probes"), rows_of(tmp_path, "probes")
    assert [row["accuracy"] for row in rows] == [row["accuracy"] for row in others]
    n_same = sum(row["control_accuracy"] == other["control_accuracy"] for row, other in zip(rows, others, strict=True))
    assert n_same < 0.1 * len(rows)


@pytest.mark.parametrize(
    ("options", "heads"),
    [
        ({"n_layers": 0}, []),
        ({"n_layers": 1, "n_heads": 1, "positions": "learned"}, ["L0H0"]),
        ({"n_heads": (0, 3), "d_head": 5, "d_value": 7, "output_biases": True}, ["L1H0", "L1H1", "L1H2"]),
        ({"n_layers": 1, "normalization": "layernorm", "feed_forward": "gelu", "positions": "none"}, ["L0H0", "L0H1"]),
        ({"n_layers": 1, "normalization": "rmsnorm", "normalization_place": "post"}, ["L0H0", "L0H1"]),
        ({"n_layers": 1, "d_head": 4, "positions": "rotary", "n_ctx": 2}, []),
    ],
)
def test_every_setting_has_its_probes(tmp_path, tokens, options, heads):
    measure(tmp_path, random_model(tokens.vocabulary, **options))
    rows = rows_of(tmp_path, "probes") if (tmp_path / "probes.parquet").exists() else []
    assert sorted({row["site"] for row in rows if row["head"] is not None}) == heads
    if "n_ctx" not in options:  # one token has nothing before it
        assert sorted({row["site"] for row in rows if row["head"] is None}) == [
            f"R{layer}" for layer in range(options.get("n_layers", 2) + 1)
        ]


def test_too_short_a_text_is_refused(tmp_path, tokens):
    with pytest.raises(UserError, match="n_ctx"):
        measure(tmp_path, random_model(tokens.vocabulary, n_ctx=100_000))


def test_a_single_document_has_no_probes(tmp_path):
    texts = [f"{number} river runs\n" * 70 for number in range(20)]
    by_split = {text_split(sha256(text.encode()).digest(), 0.4): text for text in texts}
    encoded = write_text(tmp_path, {f"{split}.txt": text for split, text in by_split.items()})
    measure(tmp_path, random_model(Tokens.open(encoded).vocabulary), encoded)
    assert not (tmp_path / "probes.parquet").exists()
    assert all(row["why_absent"] for row in rows_of(tmp_path, "probe_tasks"))


def test_too_few_steps_are_told(tmp_path, tokens):
    measure(tmp_path, random_model(tokens.vocabulary, n_layers=1), config=CONFIG.model_copy(update={"max_steps": 1}))
    assert not all(row["converged"] for row in rows_of(tmp_path, "probes"))


def test_a_planted_head_is_found_and_an_empty_one_is_not(tmp_path, tokens):
    """L0H0 attends to earlier copies of its token, or else to BOS, of which it copies nothing; L0H1 has nothing."""
    model = blank_model((2,), tokens.vocabulary, n_ctx=32)
    attention, token = attention_of(model, 0), dimensions(model, "token")
    attention.W_Q[0, token] = SHARP * tokens.vocabulary**0.5 * torch.eye(tokens.vocabulary)
    attention.W_K[0, token] = torch.eye(tokens.vocabulary)
    attention.W_K[0, token][BOS] = 0.5
    attention.position_bias[0, 0] = -2 * SHARP
    attention.W_V[0, token] = torch.eye(tokens.vocabulary)
    attention.W_V[0, token][BOS] = 0
    attention.W_O[:] = 1.0  # a head whose W_O is 0 would be none
    measure(tmp_path, model, config=CONFIG.model_copy(update={"train_tokens": 1500}))
    found = probes_of(tmp_path, "seen_before")
    assert found["L0H0"]["accuracy"] > 0.98
    assert found["L0H0"]["gain"] > found["L0H0"]["gain_low"] > 0.1
    assert found["L0H0"]["selection_gain"] > 0.1
    assert found["L0H1"]["accuracy"] == found["L0H1"]["majority_accuracy"]
    assert found["L0H1"]["gain"] <= 0
    assert found["R0"]["gain"] < 0


# Parts of speech, from a CoNLL-U file to the table.

LEXICON = {
    "DET": ("the", "a", "some"),
    "ADJ": ("cold", "deep", "clear"),
    "NOUN": ("river", "bed", "gull", "sea"),
    "VERB": ("runs", "sees", "leaves"),
}
ORDER = ("DET", "ADJ", "NOUN", "VERB", "DET", "NOUN")


def conllu(n_documents=80, n_sentences=9, seed=0):
    """Invented sentences, some of them with an adjective left out, all with a full stop written close."""
    rng = random.Random(seed)
    lines = []
    for _ in range(n_documents):
        lines.append("# newdoc")
        for _ in range(n_sentences):
            tags = [tag for tag in ORDER if tag != "ADJ" or rng.random() < 0.5]
            words = [(rng.choice(LEXICON[tag]), tag, "_") for tag in tags]
            words[-1] = (*words[-1][:2], "SpaceAfter=No")
            for number, (form, tag, misc) in enumerate([*words, (".", "PUNCT", "_")], start=1):
                lines.append(f"{number}\t{form}\t{form}\t{tag}\t_\t_\t0\t_\t_\t{misc}")
            lines.append("")
    return "\n".join(lines) + "\n"


def test_parts_of_speech_come_from_conllu_files(tmp_path):
    encoded = write_text(tmp_path, {"invented.conllu": conllu()})
    measure(tmp_path, random_model(Tokens.open(encoded).vocabulary, n_layers=1, d_model=40), encoded)
    (task,) = (row for row in rows_of(tmp_path, "probe_tasks") if row["task"] == "part_of_speech")
    assert task["why_absent"] is None
    assert task["n_classes"] == len(LEXICON) + 1
    found = probes_of(tmp_path, "part_of_speech")
    assert found["R0"]["accuracy"] > 0.98  # a token tells its part of speech
    assert found["R0"]["majority_accuracy"] < 0.5
    assert found["R0"]["gain"] < 0.01
    assert set(PYTHON_TASKS) == {
        row["task"] for row in rows_of(tmp_path, "probe_tasks") if "Python" in (row["why_absent"] or "")
    }
