"""The explorer's file: what it holds, what it leaves out, and that nothing in it can break out."""

import base64
import gzip
import hashlib
import re
import shutil
import subprocess

import numpy as np
import pytest
import torch
from conftest import HOSTILE, Explored
from explorer_files import contents_of, parts_of
from invented_study import STEPS, TOKENS_PER_STEP, Model, write_warehouse
from random_models import random_model
from tokenizers import Tokenizer, normalizers
from tokenizers.models import WordLevel

from headstream.tasks.errors import UserError
from headstream.tasks.report.explorer import explorer_contents
from headstream.tasks.report.explorer.explorer_contents import PageOptions, write_explorer
from headstream.tasks.report.explorer.explorer_page import PAGE, joined_script
from headstream.tasks.report.explorer.head_links import prose_with_head_links, with_head_links
from headstream.tasks.report.explorer.kept_runs import kept_run
from headstream.tasks.report.explorer.passages import named_text, passages_of
from headstream.tasks.report.explorer.portable_tokenizer import portable_tokenizer
from headstream.tasks.results.study_results import open_results
from headstream.tasks.training.checkpoints import load_model
from headstream.tasks.words.markdown import escaped, table_with_spreads

ROOT = PAGE.resolve().parents[3]


def test_the_policy_names_the_one_script_and_the_one_style_and_nothing_else_may_load(explored: Explored):
    parts = parts_of(explored.page)
    for name in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(parts.scripts[name].encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}';" in parts.policy
    assert parts.policy.startswith("default-src 'none';")
    assert "unsafe" not in parts.policy
    assert not re.search(r"(?:src|href|url\()\s*=?\s*[\"']?(?:https?:)?//", explored.page.read_text(encoding="utf-8"))


def test_a_page_that_has_a_server_may_ask_that_alone(explored: Explored, tmp_path):
    with open_results(explored.warehouse, "invented") as results:
        write_explorer(results, explored.files, tmp_path / "served.html", [], PageOptions(version="7"))
    alone, served = parts_of(explored.page).policy, parts_of(tmp_path / "served.html").policy
    assert "connect" not in alone
    assert served == alone.replace(" base-uri", " connect-src 'self'; base-uri")
    assert contents_of(tmp_path / "served.html")["version"] == "7"


def test_hostile_words_of_a_study_stay_inside_the_data(explored: Explored):
    parts = parts_of(explored.page)
    assert "img" not in parts.tags
    contents = contents_of(explored.page)
    assert contents["question"] == contents["answer"][0] == HOSTILE
    assert [tag for tag in parts.tags if tag not in ("meta", "script")] == [
        "html", "head", "title", "style", "body", "div", "p", "noscript", "p",
    ]  # fmt: skip


def test_equal_results_give_equal_bytes(explored: Explored, tmp_path):
    with open_results(explored.warehouse, "invented") as results:
        write_explorer(results, explored.files, tmp_path / "again.html", [HOSTILE])
    assert (tmp_path / "again.html").read_bytes() == explored.page.read_bytes()


def test_scores_are_those_of_the_warehouse(explored: Explored):
    heads = contents_of(explored.page)["tables"]["heads"]
    at_end = {
        (layer, head): score
        for model, step, layer, head, score in zip(
            *(heads[name] for name in ("model_id", "step", "layer", "head", "induction_random_period")), strict=True
        )
        if model == Model().model_id and step == STEPS[-1]
    }
    assert len(at_end) == 8
    assert at_end[1, 3] == pytest.approx(Model().induction)


def test_weights_are_the_checkpoints_in_16_bits(explored: Explored):
    contents = contents_of(explored.page)
    network, changes = contents["networks"][Model().model_id], contents["tables"]["phase_changes"]
    ends = [changes[name][0] / TOKENS_PER_STEP for name in ("window_start_tokens", "window_end_tokens")]
    nearest = [min((0, 420, 760, STEPS[-1]), key=lambda step, end=end: abs(step - end)) for end in ends]
    assert list(map(int, network["weights"])) == [STEPS[-1], *nearest, 420]
    stored = load_model(explored.files[Model().model_id].checkpoints, 420)
    block = base64.b64decode(parts_of(explored.page).scripts[network["weights"]["420"]])
    flat = np.frombuffer(block, "<f2")
    assert [name for name, _ in network["layout"]] == [name for name, _ in stored.named_parameters()]
    expected = torch.cat([parameter.flatten() for parameter in stored.parameters()]).half()
    assert torch.equal(torch.from_numpy(flat.copy()), expected)


def test_models_that_do_not_fit_have_their_attention_kept_and_then_nothing(explored: Explored, tmp_path, monkeypatch):
    layout = contents_of(explored.page)["networks"][Model().model_id]["layout"]
    monkeypatch.setattr(explorer_contents, "WEIGHT_BYTES", 2 * sum(np.prod(shape) for _, shape in layout))
    monkeypatch.setattr(explorer_contents, "RUN_BYTES", 6_000)
    with open_results(explored.warehouse, "invented") as results:
        write_explorer(results, explored.files, tmp_path / "e.html", [])
    first, second = contents_of(tmp_path / "e.html")["networks"].values()
    assert list(first["weights"]) == [str(STEPS[-1])]
    assert not first["kept"]
    assert not second["weights"]
    assert 0 < len(second["kept"]) < 6
    blocks = parts_of(tmp_path / "e.html").scripts
    assert sum(len(base64.b64decode(blocks[run["block"]])) for run in second["kept"].values()) <= 6_000


def test_a_study_without_weights_or_heads_has_its_explorer(tmp_path):
    warehouse = write_warehouse(tmp_path / "w.duckdb", Model(n_layers=0, loss=4.0))
    with open_results(warehouse, "invented") as results:
        write_explorer(results, {}, tmp_path / "e.html", [])
    contents = contents_of(tmp_path / "e.html")
    assert contents["networks"] == {}
    assert contents["tables"]["heads"] == {}


def test_a_kept_run_is_what_the_model_does():
    model = random_model(n_layers=2, n_heads=(2, 3), positions="rotary", d_head=4).float()
    tokens = [1, 5, 9, 5, 2, 30]
    facts, packed = kept_run(model, tokens)
    raw = gzip.decompress(packed)
    n, size = len(tokens), 21
    patterns = np.frombuffer(raw[: 5 * size], np.uint8).reshape(5, size) / 255
    trace = model.trace(torch.tensor([tokens]))
    expected = torch.cat([layer.pattern[0] for layer in trace.layers])
    for head in range(5):
        rows = np.tril(np.ones((n, n), bool))
        assert np.abs(patterns[head] - expected[head].numpy()[rows]).max() < 0.5 / 255 + 1e-6
    lengths = np.frombuffer(raw[5 * size :], "<f2").reshape(5, n)
    # What head 1 of layer 1 writes at a position that looks at itself alone: position 0.
    alone = trace.layers[1].head_outputs[0, 1, 0].norm()
    assert lengths[3, 0] == pytest.approx(float(alone), rel=2e-3)
    logits = trace.logits[0].log_softmax(-1)
    assert facts["losses"] == pytest.approx([-float(logits[i, tokens[i + 1]]) for i in range(n - 1)], abs=1e-4)
    assert facts["best"][2][0] == int(logits[2].argmax())


def test_passages_are_of_different_documents_and_repeat(explored: Explored):
    passages = passages_of(explored.tokens, 64)
    assert len({tuple(passage.tokens) for passage in passages}) == len(passages) == 6
    assert all(passage.tokens[0] == explored.tokens.bos and len(passage.tokens) <= 64 for passage in passages)
    random = passages[-1].tokens[1:]
    assert random[:15] == random[15:30] == random[45:]
    assert len(set(random[:15])) == 15


def test_only_tokenizers_that_the_page_can_run_go_into_it(explored: Explored):
    fields = portable_tokenizer(explored.tokens.tokenizer)
    assert fields is not None
    assert len(fields["vocabulary"]) == explored.tokens.vocabulary
    other = Tokenizer(WordLevel({"a": 0}, unk_token="a"))
    assert portable_tokenizer(other) is None
    lowered = Tokenizer.from_str(explored.tokens.tokenizer.to_str())
    lowered.normalizer = normalizers.Lowercase()
    assert portable_tokenizer(lowered) is None


def test_heads_of_a_table_lead_to_their_cards():
    row = {"model": "2L4H a=(b)", "head": "L1H3", "gain": 0.5, "text": "L1H3 and"}
    linked = with_head_links(row)
    assert linked == row | {"head": "[L1H3](explorer.html#2L4H%20a%3D%28b%29/L1H3)"}
    assert "| [L1H3](explorer.html#2L4H%20a%3D%28b%29/L1H3) |" in table_with_spreads([linked])
    assert with_head_links({"head": "L1H3"}) == {"head": "L1H3"}


def test_heads_in_prose_lead_to_their_cards():
    text = "2L4H has L1H0 (0.85) *here*; L1H0's keys read L0H2. XL1H0 and L1H are none."
    linked = prose_with_head_links(text, "2L4H")
    assert linked.count("](explorer.html#2L4H/L1H0)") == 2
    assert linked.startswith("2L4H has [L1H0](explorer.html#2L4H/L1H0) (0.85) \\*here\\*; ")
    assert linked.endswith(" [L0H2](explorer.html#2L4H/L0H2). XL1H0 and L1H are none.")
    assert prose_with_head_links(text, None) == escaped(text)


@pytest.mark.parametrize("content", [b"\xff\xfe", None])
def test_a_text_must_be_text(tmp_path, content):
    if content:
        (tmp_path / "t").write_bytes(content)
    with pytest.raises(UserError, match="a text must be a file in UTF-8"):
        named_text(tmp_path / "t")


def test_each_module_is_in_the_script_once_after_those_that_it_imports_from():
    script = joined_script()
    places = {name: script.index(f"\nmodules.{name} = ") for name in (path.stem for path in PAGE.glob("*.js"))}
    assert script.count("\nmodules.") == len(places) + 1 > 20  # the last line opens the page
    for name in places:
        for used in re.findall(r"} = modules\.(\w+);", script[places[name] :].partition("\n})();")[0]):
            assert places[used] < places[name], (used, name)
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    assert "</script" not in script
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", script)


@pytest.mark.parametrize("path", sorted(PAGE.glob("*.[cj]s*")), ids=lambda path: path.name)
def test_lines_of_the_page_are_short(path):
    assert [line for line in path.read_text(encoding="utf-8").splitlines() if len(line) > 120] == []


@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_lint_says_that_it_leaves_the_page_out_where_there_is_no_npm(tmp_path):
    (tmp_path / "sh").symlink_to(shutil.which("sh"))
    done = subprocess.run(
        [shutil.which("make"), "--silent", "lint-page"],
        cwd=ROOT,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "The explorer's JavaScript isn't checked: that takes npm and node 20 or later.\n"


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
@pytest.mark.parametrize("path", sorted(PAGE.glob("*.js")), ids=lambda path: path.name)
def test_every_module_is_a_module_to_node(path, tmp_path):
    shutil.copy(path, tmp_path / "module.mjs")
    done = subprocess.run(
        ["node", "--check", str(tmp_path / "module.mjs")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
