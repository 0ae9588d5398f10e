"""What the page computes by itself, in a browser: the forward pass against torch, the tokenizer against tokenizers."""

import base64
import random

import numpy as np
import pytest
import torch
from random_models import N_CTX, random_model
from tiny import tiny_tokens
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from tried_options import untried

from headstream.models.prompts.exact_effects import exact_node_effects
from headstream.models.prompts.graph import PromptGraph
from headstream.models.prompts.pairs import Pairs
from headstream.models.prompts.patched_runs import base_run
from headstream.models.transformer import Transformer
from headstream.tasks.prompts.prompt_pair import PromptPair
from headstream.tasks.prompts.tokenised_pairs import tokenised
from headstream.tasks.report.explorer.explorer_page import PAGE
from headstream.tasks.report.explorer.portable_models import RUNS, layout, packed_weights, sizes
from headstream.tasks.report.explorer.portable_tokenizer import portable_tokenizer
from headstream.tasks.text.token_reading import Tokens

SITE = "http://explorer.test"
FORWARD = f"""async ([sizes, layout, block, tokens, off]) => {{
  const {{ forward }} = await import("{SITE}/transformer.js");
  const {{ weightsOf }} = await import("{SITE}/weights.js");
  const {{ floatsOfHalves }} = await import("{SITE}/blocks.js");
  const bytes = Uint8Array.from(atob(block), (sign) => sign.charCodeAt(0));
  const weights = weightsOf(layout, floatsOfHalves(bytes));
  const pass = forward(sizes, weights, tokens, (name, own) => (name === off ? null : own));
  const lists = (heads) => heads.flat().map((numbers) => [...numbers]);
  return {{ patterns: lists(pass.patterns), lengths: lists(pass.lengths), logits: [...pass.logits] }};
}}"""
PATCH = f"""async ([sizes, layout, block, clean, corrupt, asked, several]) => {{
  const {{ logOdds, patchedLogits, promptRun }} = await import("{SITE}/patching.js");
  const {{ weightsOf }} = await import("{SITE}/weights.js");
  const {{ floatsOfHalves }} = await import("{SITE}/blocks.js");
  const weights = weightsOf(layout, floatsOfHalves(Uint8Array.from(atob(block), (sign) => sign.charCodeAt(0))));
  const [one, other] = [clean, corrupt].map((tokens) => promptRun(sizes, weights, tokens));
  const odds = (run, from, nodes) => logOdds(patchedLogits(sizes, weights, run, from, nodes), asked);
  const each = (run, from) => [...run.outputs.keys()].map((node) => odds(run, from, [node]));
  return {{
    nodes: [...one.outputs.keys()],
    odds: [odds(one, other, []), odds(other, one, [])],
    noised: each(one, other),
    restored: each(other, one),
    several: [...patchedLogits(sizes, weights, one, other, several)],
  }};
}}"""
PAIR = f"""async ([fields, opening, nContext, pairs]) => {{
  const {{ Tokenizer }} = await import("{SITE}/tokenizer.js");
  const {{ pairTokens }} = await import("{SITE}/pair_tokens.js");
  const text = {{ tokenizer: new Tokenizer(fields), opening }};
  return pairs.map((pair) => pairTokens(pair, text, nContext));
}}"""
CONNECTED = f"""async ([heads, groups, rows]) => {{
  const {{ Behaviour }} = await import("{SITE}/behaviours.js");
  const layers = heads.map((n, layer) => Array.from({{ length: n }}, (_, i) => ({{ name: `L${{layer}}H${{i}}` }})));
  const edges = rows.map((row, i) => ({{ ...row, prompts: "p", score_share: 1 - i / rows.length, in_circuit: true }}));
  const tables = {{ circuit_edges: edges, circuit_curves: [], node_effects: [] }};
  const model = {{ layers, row: {{ n_key_value_heads: groups }}, rows: tables }};
  const behaviour = new Behaviour(model, {{ prompts: "p", n_edges: -1 }});
  return behaviour.circuit(rows.length).map(({{ writer, reader, port }}) => [writer, reader, port]);
}}"""
ENCODE = f"""async ([fields, texts]) => {{
  const {{ Tokenizer }} = await import("{SITE}/tokenizer.js");
  const tokenizer = new Tokenizer(fields);
  return texts.map((text) => tokenizer.encode(text));
}}"""
POST, PARALLEL = {"normalization_place": "post", "feed_forward": "relu"}, {"parallel_sublayers": True, "biases": True}
KINDS = [
    {},
    {"n_layers": 0},
    {"n_heads": (2, 3), "tied_embeddings": True},
    {"positions": "rotary", "d_head": 6},
    {"positions": "rotary", "d_head": 8, "rotary_fraction": 0.5, "rotary_base": 100.0, "rotary_pairs": "half-split"},
    {"positions": "learned", "biases": True, "normalization": "layernorm", "feed_forward": "gelu"},
    {"positions": "sinusoidal", "normalization": "rmsnorm", "feed_forward": "swiglu", "norm_epsilon": 1e-3},
    {"positions": "shortformer", "qk_normalization": True, "qkv_biases": True},
    {"positions": "learned_shortformer", "normalization": "layernorm", **POST},
    {"positions": "none", "normalization": "rmsnorm", "feed_forward": "geglu", **PARALLEL},
    {"feed_forward": "gelu_tanh", "d_mlp": 11, "output_biases": True, "gates": "hard_concrete"},
    {"feed_forward": "geglu_tanh", "gates": "dynamic", "normalization": "layernorm"},
    {"n_heads": 6, "n_key_value_heads": 2, "qk_normalization": True, "biases": True},
    {"attention": "local", "attention_window": 3},
    {"attention": "strided", "attention_window": 3, "stride": 2, "positions": "none"},
    {"attention": "top_k", "top_k": 4},
]  # fmt: skip


@pytest.fixture(scope="module")
def page(browser):
    """A page at which the explorer's modules can be imported as they are."""
    page = browser.new_page()

    def answer(route) -> None:
        name = route.request.url.removeprefix(f"{SITE}/")
        if name:
            route.fulfill(path=PAGE / name, content_type="text/javascript")
        else:
            route.fulfill(body="<!doctype html>", content_type="text/html")

    page.route(f"{SITE}/**", answer)
    page.goto(f"{SITE}/")
    yield page
    page.close()


def in_16_bits(model: Transformer) -> Transformer:
    """The model with weights that 16 bits hold; static gates with what makes them 1, 1/2 and 0."""
    for name, parameter in model.named_parameters():
        exact = torch.tensor([10.0, 0.0, -10.0]) if name.endswith("log_alpha") else parameter.half()
        parameter.data = exact.to(parameter.dtype)
    return model


def computed(page, model: Transformer, tokens: list[int], off: str = "") -> dict:
    block = base64.b64encode(packed_weights(model)).decode()
    return page.evaluate(FORWARD, [sizes(model), layout(model), block, tokens, off])


def test_whatever_the_page_runs_is_compared():
    assert untried(RUNS, [random_model(**kind).architecture for kind in KINDS]) == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: " ".join(map(str, kind.values())) or "default")
def test_the_page_computes_what_torch_does(page, kind):
    model = in_16_bits(random_model(**kind))
    tokens = np.random.default_rng(0).integers(model.d_vocab, size=N_CTX).tolist()
    trace = model.trace(torch.tensor([tokens]))
    found = computed(page, model, tokens)
    patterns = torch.cat([layer.pattern[0] for layer in trace.layers]) if trace.layers else torch.zeros(0)
    assert len(found["patterns"]) == sum(model.architecture.heads_per_layer)
    for mine, theirs in zip(found["patterns"], patterns, strict=True):
        assert np.abs(np.array(mine) - theirs.flatten().numpy()).max() < 1e-4
    scale = float(trace.logits.std())
    assert np.abs(np.array(found["logits"]) - trace.logits.flatten().numpy()).max() < 1e-4 * max(1, scale)


def test_weights_in_16_bits_move_patterns_by_less_than_a_hundredth(page):
    model = random_model(scale=0.2, n_layers=3, feed_forward="gelu", normalization="rmsnorm")
    tokens = np.random.default_rng(1).integers(model.d_vocab, size=N_CTX).tolist()
    patterns = torch.cat([layer.pattern[0] for layer in model.trace(torch.tensor([tokens])).layers])
    found = np.array(computed(page, model, tokens)["patterns"]).reshape(patterns.shape)
    assert 0 < np.abs(found - patterns.numpy()).max() < 1e-2


def test_a_head_that_is_off_writes_nothing(page):
    model = in_16_bits(random_model(n_layers=2))
    tokens = [3, 1, 4, 1, 5, 9, 2, 6]
    mask = [torch.tensor([1.0, 0.0, 1.0]).double(), torch.ones(3).double()]
    expected = model(torch.tensor([tokens]), head_mask=mask)
    found = np.array(computed(page, model, tokens, "L0H1")["logits"])
    assert np.abs(found - expected.flatten().numpy()).max() < 1e-4 * float(expected.std())
    assert np.abs(found - np.array(computed(page, model, tokens)["logits"])).max() > 0.1


def test_what_a_head_would_write_of_a_token_has_its_length(page):
    model = in_16_bits(random_model(n_layers=1))
    trace = model.trace(torch.tensor([[7]]))  # one token alone: each head mixes all of it
    lengths = [numbers[0] for numbers in computed(page, model, [7])["lengths"]]
    assert lengths == pytest.approx(trace.layers[0].head_outputs[0, :, 0].norm(dim=-1).tolist(), rel=1e-4)


PATCHED = [kind for kind in KINDS if kind.get("gates") != "dynamic"]  # which models/prompts leaves out
CLEAN, CORRUPT = [3, 1, 4, 1, 5, 9, 2, 6], [3, 1, 4, 7, 5, 9, 8, 6]
ANSWERS, WRONG = [5, 11], [2]


def patched_in_page(page, model: Transformer, several: list[str]) -> dict:
    block = base64.b64encode(packed_weights(model)).decode()
    asked = {"answers": ANSWERS, "wrong": WRONG}
    return page.evaluate(PATCH, [sizes(model), layout(model), block, CLEAN, CORRUPT, asked, several])


@pytest.mark.parametrize("kind", PATCHED, ids=lambda kind: " ".join(map(str, kind.values())) or "default")
def test_a_node_that_is_patched_in_the_page_has_its_exact_effect(page, kind):
    model = in_16_bits(random_model(**kind))
    pairs = Pairs(*(torch.tensor([tokens]) for tokens in (CLEAN, CORRUPT, ANSWERS, WRONG)))
    clean, corrupt = base_run(model, pairs.clean), base_run(model, pairs.corrupt)
    noised, restored = (effects[1:, 0].tolist() for effects in exact_node_effects(clean, corrupt, pairs))
    odds = [pairs.log_odds(run.logits).item() for run in (clean, corrupt)]
    found = patched_in_page(page, model, [])
    assert found["nodes"] == [str(node) for node in clean.graph.writers[1:]]
    near = {"abs": 1e-4 * max(1, float(clean.logits.std()))}
    assert found["odds"] == pytest.approx(odds, **near)
    assert [odds[0] - own for own in found["noised"]] == pytest.approx(noised, **near)
    assert [own - odds[1] for own in found["restored"]] == pytest.approx(restored, **near)


def test_with_every_node_patched_the_other_run_is_left_as_the_last_token_is_the_same(page):
    model = in_16_bits(random_model(n_layers=2, feed_forward="gelu", biases=True, normalization="layernorm"))
    clean, corrupt = (base_run(model, torch.tensor([tokens])) for tokens in (CLEAN, CORRUPT))
    found = np.array(patched_in_page(page, model, [str(node) for node in clean.graph.writers[1:]])["several"])
    assert np.abs(found - corrupt.logits[0].numpy()).max() < 1e-4 * max(1, float(corrupt.logits.std()))
    assert np.abs(found - clean.logits[0].numpy()).max() > 0.1


@pytest.mark.parametrize(
    "options", [{"n_layers": 2, "feed_forward": "relu"}, {"n_layers": 3, "n_heads": 4, "n_key_value_heads": 2}]
)
def test_edges_on_no_path_are_left_out_as_circuits_leave_them_out(page, options):
    architecture = random_model(**options).architecture
    graph = PromptGraph(architecture)
    generator = torch.Generator().manual_seed(0)
    for fraction in (0.1, 0.3, 0.6):
        chosen = torch.rand(graph.n_edges, generator=generator) < fraction
        rows = [graph.edges[i] for i in chosen.nonzero()[:, 0].tolist()]
        kept = [graph.edges[i] for i in graph.connected(chosen).nonzero()[:, 0].tolist()]
        asked = [{"writer": str(edge.writer), "reader": str(edge.reader), "port": edge.port} for edge in rows]
        heads = list(architecture.heads_per_layer)
        found = page.evaluate(CONNECTED, [heads, architecture.n_key_value_heads, asked])
        assert found == [[str(writer), str(reader), port] for writer, reader, port in kept]


def test_a_pair_that_is_typed_is_read_as_one_of_a_file(page):
    tokens = Tokens.open(tiny_tokens())
    words = ("the river", " runs", " flows", "", "the", " sea", " deep water", "  ", " r", "s", "ri")
    rng = random.Random(0)
    texts = [
        [rng.choice(words) + rng.choice(words) for _ in "12"] + [rng.choice(words) for _ in "34"] for _ in "." * 300
    ]
    pairs = [text for text in texts if text[2] and text[3]]

    def encode(text: str) -> list[int]:
        return tokens.tokenizer.encode(text).ids

    def expected(clean: str, corrupt: str, answer: str, wrong: str):
        read = tokenised(PromptPair(clean, corrupt, (answer,), (wrong,), ""), encode, (tokens.bos,), 9)
        return read if isinstance(read, str) else {name: [*part] for name, part in read._asdict().items()}

    names = ("clean", "corrupt", "answer", "wrong")
    asked = [dict(zip(names, pair, strict=True)) for pair in pairs]
    found = page.evaluate(PAIR, [portable_tokenizer(tokens.tokenizer), [tokens.bos], 9, asked])
    assert found == [expected(*pair) for pair in pairs]
    assert len({str(each) for each in found if isinstance(each, str)}) >= 4
    assert sum(isinstance(each, dict) for each in found) > 10


def sentencepiece(prefix: bool) -> Tokenizer:
    """A tokenizer as Llama has it: whole texts of characters, bytes for those without a token."""
    signs = [
        "<unk>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "\u2581",
        *"abcdehilnorstvw'.",
        "th",
        "the",
        "\u2581the",
        "er",
    ]
    merges = [("t", "h"), ("th", "e"), ("\u2581", "the"), ("e", "r")]
    model = models.BPE(
        {sign: i for i, sign in enumerate(signs)}, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True
    )
    tokenizer = Tokenizer(model)
    spaces = normalizers.Replace(" ", "\u2581")
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), spaces]) if prefix else spaces
    return tokenizer


def digit_by_digit() -> Tokenizer:
    tokenizer = Tokenizer.from_str(Tokens.open(tiny_tokens()).tokenizer.to_str())
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), bytes_])
    return tokenizer


@pytest.mark.parametrize("kind", ["bytes", "digits", "sentencepiece", "sentencepiece without prefix"])
def test_the_page_tokenises_as_the_corpus_was(page, kind):
    tokenizer = {
        "bytes": lambda: Tokens.open(tiny_tokens()).tokenizer,
        "digits": digit_by_digit,
        "sentencepiece": lambda: sentencepiece(True),
        "sentencepiece without prefix": lambda: sentencepiece(False),
    }[kind]()
    signs = "aZé\u0301ß漢🙂٣½ \t\n\r\x85\ufeff\u00a0\u2028'sllré,.<>/\\\"\x00{}_0129"
    rng = random.Random(0)
    texts = ["".join(rng.choices(signs, k=rng.randrange(30))) for _ in range(300)]
    texts += ["the river's water flows   down\n\n  to the sea", "we'll they've I'd", "", "   ", "<|bos|>", "</script>"]
    found = page.evaluate(ENCODE, [portable_tokenizer(tokenizer), texts])
    assert found == [tokenizer.encode(text).ids for text in texts]
