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

from headstream.models.transformer import Transformer
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
  const pass = forward(sizes, weights, tokens, (layer, head) => off === `L${{layer}}H${{head}}`);
  const lists = (heads) => heads.flat().map((numbers) => [...numbers]);
  return {{ patterns: lists(pass.patterns), lengths: lists(pass.lengths), logits: [...pass.logits] }};
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
