"""Attention drawn in a notebook: small, escaped, readable without scripts, and pointed at in a browser."""

import base64
import html
import json
import re
import shutil
import zlib

import numpy as np
import pytest
import torch

from headstream import attention_drawing
from headstream.attention_drawing import packed
from headstream.attention_on_text import Attention, AttentionOnTexts

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>\u202e\""


def random_attention(n_tokens: int, *heads: int, tokens: tuple[str, ...] = ()) -> Attention:
    generator = torch.Generator().manual_seed(0)
    scores = [torch.randn(n, n_tokens, n_tokens, generator=generator) for n in heads]
    patterns = tuple((2 * each + torch.full((n_tokens, n_tokens), -torch.inf).triu(1)).softmax(-1) for each in scores)
    return Attention(tokens or tuple(f"t{i}" for i in range(n_tokens)), tuple(range(n_tokens)), patterns)


def data_of(drawing: str) -> dict[str, str]:
    return {name: html.unescape(value) for name, value in re.findall(r' data-(\w+)="([^"]*)"', drawing)}


def test_the_weights_are_those_of_every_head_to_a_thousandth():
    attention = random_attention(5, 2, 3)
    data = data_of(attention._repr_html_())
    assert json.loads(data["heads"]) == attention.heads
    assert json.loads(data["tokens"]) == [*attention.tokens]
    weights = np.frombuffer(zlib.decompress(base64.b64decode(data["weights"])), "<u2").reshape(5, 15)
    for head, own in zip(attention.heads, weights, strict=True):
        expected = [attention[head][q, k].item() for q in range(5) for k in range(q + 1)]
        assert np.abs(own / 1000 - expected).max() <= 0.0005001


def test_thirty_heads_on_64_tokens_take_less_than_300_kb():
    assert len(random_attention(64, 10, 10, 10)._repr_html_().encode()) < 300_000


def test_of_a_text_that_is_too_long_the_beginning_is_drawn(monkeypatch):
    monkeypatch.setattr(attention_drawing, "MAX_WEIGHTS", 5 * 15 + 5)
    drawing = random_attention(9, 2, 3)._repr_html_()
    assert "Attention on 9 tokens, of which the first 5 are drawn" in drawing
    assert data_of(drawing)["weights"] == packed([own[:, :5, :5] for own in random_attention(9, 2, 3).layers])


def test_nothing_comes_from_elsewhere_and_tokens_are_text():
    drawing = random_attention(3, 1, tokens=("<|bos|>", HOSTILE, "b"))._repr_html_()
    assert "://" not in drawing
    assert drawing.count("<script") == drawing.count("</script") == 1
    assert "<img" not in drawing


def test_without_scripts_there_is_a_table():
    attention = random_attention(4, 1, 1)
    drawing = attention._repr_html_()
    share = attention["L1H0"].diagonal()[1:].mean().item()
    assert attention.shares.loc["L1H0", "to itself"] == pytest.approx(share)
    assert f"<tr><th>L1H0</th><td>{attention.shares.loc['L1H0', 'to BOS']:.2f}</td><td>{share:.2f}</td>" in drawing


def test_a_model_without_heads():
    assert Attention(("a",), (1,), ())._repr_html_() == "<p>Attention on 1 token: the model has no heads.</p>"


CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def page():
    """Two drawings on one page."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        pytest.skip(f"needs a browser: one of {', '.join(CHROMIUM)} on the path")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page()
        wrong = []  # errors, and requests for anything from elsewhere
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: wrong.append(request.url))
        first, second = random_attention(5, 2, 3), random_attention(3, 1, tokens=("<|bos|>", HOSTILE, "b"))
        page.set_content(f"<!doctype html><body>{first._repr_html_()}{second._repr_html_()}</body>")
        page.wait_for_selector(".headstream-attention:nth-of-type(2) .said:not(:empty)")
        yield page
        assert wrong == []
        browser.close()


def test_pointing_says_the_weight_and_both_tokens(page):
    attention = random_attention(5, 2, 3)
    first = page.locator(".headstream-attention").first
    first.get_by_role("radio", name="L1H2").click()
    box = first.locator(".large canvas").bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.7 * box["height"])
    assert first.get_by_role("status").inner_text() == f"L1H2: 3 t3 → 1 t1: {attention['L1H2'][3, 1]:.3f}"
    first.get_by_role("radio", name="4 t4").hover()
    key = int(attention["L1H2"][4].argmax())
    assert first.get_by_role("status").inner_text() == f"L1H2: 4 t4 → {key} t{key}: {attention['L1H2'][4, key]:.3f}"
    title = first.get_by_role("radio", name="1 t1").get_attribute("title")
    assert title == f"4 t4 → 1 t1: {attention['L1H2'][4, 1]:.3f}"


def test_keys_move_among_heads_tokens_and_weights(page):
    attention = random_attention(5, 2, 3)
    first = page.locator(".headstream-attention").first
    said = first.get_by_role("status")
    first.get_by_role("radio", name="L1H1").click()
    page.keyboard.press("ArrowDown")
    assert said.inner_text().startswith("L0H1: ")
    page.keyboard.press("ArrowLeft")
    assert said.inner_text().startswith("L0H0: ")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")
    assert said.inner_text().startswith("L0H0: 3 t3 →")
    page.keyboard.press("Tab")
    for key in ("ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowUp", "ArrowRight"):
        page.keyboard.press(key)
    assert said.inner_text() == f"L0H0: 2 t2 → 1 t1: {attention['L0H0'][2, 1]:.3f}"


def test_drawings_on_one_page_do_not_meddle_and_tokens_stay_text(page):
    first, second = page.locator(".headstream-attention").all()
    before = first.get_by_role("status").inner_text()
    second.get_by_role("radio", name="2 b").click()
    assert second.get_by_role("status").inner_text().startswith("L0H0: 2 b →")
    assert first.get_by_role("status").inner_text() == before
    assert second.locator(".tokens button").all_inner_texts()[1] == HOSTILE
    assert page.evaluate("window.hacked") is None


@pytest.mark.parametrize(("theme", "scheme"), [("true", "dark"), ("false", "light")])
def test_jupyters_theme_goes_before_that_of_the_system(page, theme, scheme):
    page.emulate_media(color_scheme=scheme)
    page.evaluate(f"document.body.dataset.jpThemeLight = '{theme}'")
    color = page.locator(".headstream-attention").first.evaluate("each => getComputedStyle(each).backgroundColor")
    assert color == ("rgb(255, 255, 255)" if theme == "true" else "rgb(13, 17, 23)")
    page.evaluate("delete document.body.dataset.jpThemeLight")
    color = page.locator(".headstream-attention").first.evaluate("each => getComputedStyle(each).backgroundColor")
    assert color == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(13, 17, 23)")


def test_several_texts_are_drawn_one_below_the_other():
    texts = AttentionOnTexts([random_attention(4, 1, 2), random_attention(6, 1, 2)])
    assert texts._repr_html_() == "".join(each._repr_html_() for each in texts)
    assert texts._repr_html_().count('class="headstream-attention"') == 2
