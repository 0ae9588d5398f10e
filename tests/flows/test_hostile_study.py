"""A study whose text, names and question try to become markup or code, run where the environment holds secrets."""

import html
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import pyarrow.parquet as pq
import pytest
from markdown_it import MarkdownIt
from small_study import ANALYSIS, small_study

from headstream.flows import deployments
from headstream.flows.study import run_study
from headstream.tasks import places
from headstream.tasks.report import published_page
from headstream.tasks.results.claim_files import SOURCES
from headstream.tasks.words.plain_text import terminal_safe

HOSTILE = (
    "# owned",
    "<script>alert(1)</script><img src=x onerror=alert(1)><!--",
    "a | b || c \\| d",
    "`code` ``` ~~~ *em* **strong** __init__ ~~gone~~",
    "[a](javascript:alert(1)) ![b](https://example.com/x.png) <https://example.com> [c]: https://example.com",
    "](javascript:alert(1))",
    "```mermaid\ngraph TD; A-->B\n```",
    "$math$ $$x^2$$ \\(y\\) &lt;b&gt; &#96;",
    "{{ 7 * 6 }} {% raw %} ${HOME} $(id)",
    "\u202etxt.exe\u2066 \u200b\u200f\u061c \x1b[31m\x07\x08\x7f \x9b",
    "'; DROP TABLE models; -- \" \\",
    "</details></td></table></svg>]]>",
    "- [ ] 1. > =CMD()",
    "\U0001f600" * 8 + "x" * 700,
)
SOURCE_LINKS = {source["url"] for source in tomllib.loads(SOURCES.read_text()).values() if "url" in source}
FOLDER = "a|b `c` <script>alert(2)<x> ]( $m$ {{ 7 * 6 }} \u202e"
SECRETS = {
    "HEADSTREAM_DATABASE_URL": "postgresql://user:s3cr3t-database@localhost:1/x",
    "HEADSTREAM_ON_FAILURE": "https://localhost:1/s3cr3t-hook",
    "PREFECT_API_KEY": "s3cr3t-key",
    "GITHUB_TOKEN": "s3cr3t-token",
}


@pytest.fixture(scope="module")
def report(prefect_server, home, tmp_path_factory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("text") / FOLDER
    folder.mkdir()
    for i in range(150):
        lines = [HOSTILE[(i * k + k) % len(HOSTILE)] for k in range(1, 9)]
        (folder / f"{i} <img onerror=x> |`$.txt").write_text("\n".join([str(i), *lines]))
    content = {
        "name": "hostile",
        "question": "\n".join(HOSTILE[:11])[:500],
        "corpus": {"paths": [str(folder)], "validation_fraction": 0.3},
        "tokenizer": {"vocabulary": 500},
        "grid": {"n_layers": [2]},
        "analysis": ANALYSIS | {"stages": ["behaviour", "weight-circuits", "activation-circuits", "probes"]},
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SECRETS.items():
            patch.setenv(name, value)
        yield run_study(small_study(**content))


def test_the_reports_markdown_is_the_templates_own(report):
    text = report.read_text()
    assert all(sign.isprintable() or sign in "\n\u00a0" for sign in text)
    for token in walk(MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)):
        match token.type:
            case "html_block" | "html_inline":
                assert re.fullmatch(r"<details><summary>[^<>]*</summary>|</details>", token.content.strip())
            case "link_open":
                href = token.attrs["href"]
                beside = re.fullmatch(r"queries/\w+\.sql|explorer\.html(#[\w%.=-]+/L\d+H\d+)?", href)
                assert beside or href.startswith("#") or href in SOURCE_LINKS
            case "image":
                assert re.fullmatch(r"figures/\w+\.svg", token.attrs["src"])
            case "fence":
                assert token.info in ("toml", "json")
            case "inline":
                first, end = token.map
                assert "$" not in "".join(text.splitlines()[first:end])
            case "code_block":
                raise AssertionError(token.content)
            case "table_open":
                rows = [line.replace("\\\\", "") for line in text.splitlines()[slice(*token.map)]]
                assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1


def walk(tokens):
    for token in tokens:
        yield token
        yield from walk(token.children or [])


def test_headings_and_question_are_what_they_were(report):
    text = report.read_text()
    assert "owned" not in " ".join(re.findall("^#.*", text, flags=re.MULTILINE))
    quote = re.search("^> (.*)$", text, flags=re.MULTILINE)
    shown = html.unescape(re.sub("<[^>]*>", "", MarkdownIt("commonmark").render(quote[1])))
    assert shown.split() == terminal_safe(" ".join("\n".join(HOSTILE[:11])[:500].split())).split()
    assert "42" not in quote[1]


def test_figures_hold_no_script(report):
    figures = sorted(report.parent.glob("figures/*.svg"))
    assert len(figures) > 10
    for path in figures:
        assert all(sign.isprintable() or sign in "\n\u00a0" for sign in path.read_text())
        for element in ElementTree.parse(path).iter():
            assert element.tag.rpartition("}")[2] not in ("script", "foreignObject", "a", "iframe")
            for name, value in element.attrib.items():
                assert not name.startswith("on")
                assert not name.endswith("href") or value.startswith(("#", "data:image/png;base64,"))


def test_hostile_text_did_reach_the_results(report):
    """Else the other tests would show nothing."""
    with duckdb.connect(str(places.warehouse_file()), read_only=True) as connection:
        (samples,) = connection.execute("SELECT string_agg(key_token, '') FROM attention_samples").fetchone()
        (source,) = connection.execute("SELECT source FROM corpora").fetchone()
    assert set("|`<>$*[]") & set(samples)
    assert FOLDER in source
    assert "&lt;script" in report.read_text()


def test_prefects_page_shows_the_answer_as_text(report, monkeypatch):
    pages = []
    monkeypatch.setattr(deployments, "create_markdown_artifact", lambda page, key: pages.append(page))
    monkeypatch.setattr(published_page, "answer_lines", lambda results: list(HOSTILE))
    deployments.publish_results("hostile")
    assert "owned" in pages[0]
    for token in walk(MarkdownIt("commonmark").parse(pages[0])):
        assert token.type not in ("html_block", "html_inline", "link_open", "image", "fence")


def texts(path: Path) -> str:
    """All that a file says, decompressed."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        return f"{table.schema.metadata} {table.to_pydict()}"
    if path.suffix == ".duckdb":
        with duckdb.connect(str(path), read_only=True) as connection:
            names = [name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
            return " ".join(str(connection.execute(f"FROM {name}").fetchall()) for name in names)
    return path.read_bytes().decode(errors="replace")


def test_no_file_holds_a_secret(report, home):
    files = [path for path in home.rglob("*") if path.is_file()]
    with_question = {path.suffix for path in files if "# owned" in texts(path) or "\\# owned" in texts(path)}
    assert with_question >= {".json", ".parquet", ".duckdb", ".md"}
    for path in files:
        assert "s3cr3t" not in texts(path), path
