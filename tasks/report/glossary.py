"""The words that a report explains: each where it is first used, by a link with a title, and all of them at the end."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache

from headstream.tasks.places import ROOT
from headstream.tasks.words.markdown import escaped, markdown_table

FILE = ROOT / "reports" / "glossary.toml"
HEADING = "Glossary"
_APART = re.compile(r"!?\[[^][]*\]\([^)]*\)|`[^`]*`|<[^>]*>")  # links, images, code and tags are no prose
_NO_PROSE = ("#", "|", "!", "<", ">", "```")  # how lines begin that aren't, either


@cache
def meanings() -> Mapping[str, Mapping[str, str]]:
    """What words mean: `basics`, and `terms`, which are linked."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def with_glossary(text: str) -> str:
    """A page of markdown with a glossary of the words that it uses, to which the first use of each term leads."""
    basics, terms = (_used(words, text) for words in meanings().values())
    if not basics and not terms:
        return text
    text, linked = _linked(text, terms)
    rows = [(escaped(word), escaped(meaning)) for word, meaning in sorted((basics | terms).items(), key=_by_word)]
    table = markdown_table(("word", "what it means"), (False, False), rows)
    # Definitions of links stand apart, so that the text above can be read as it is.
    links = "\n".join(f'[{term}]: #{HEADING.lower()} "{_title(terms[term])}"' for term in linked)
    return f"{text}\n## {HEADING}\n\n{table}\n\n{links}\n"


def _used(words: Mapping[str, str], text: str) -> dict[str, str]:
    return {word: meaning for word, meaning in words.items() if re.search(_pattern(word), text)}


def _by_word(entry: tuple[str, str]) -> str:
    return entry[0].lower()


def _linked(text: str, terms: Iterable[str]) -> tuple[str, list[str]]:
    """The text with each term made a link where its prose first uses it, and the terms that it uses in prose."""
    lines, in_code = text.split("\n"), False
    left, linked = list(terms), []
    for i, line in enumerate(lines):
        in_code ^= line.startswith("```")
        if in_code or line.startswith(_NO_PROSE):
            continue
        for term in list(left):
            if use := _first_use(term, lines[i]):
                name = f"[{use[0]}]" if use[0] == term else f"[{use[0]}][{term}]"
                lines[i] = lines[i][: use.start()] + name + lines[i][use.end() :]
                left.remove(term)
                linked.append(term)
    return "\n".join(lines), linked


def _first_use(term: str, line: str) -> re.Match[str] | None:
    """Where a line's prose first uses a term."""
    start = 0
    for apart in [*_APART.finditer(line), *re.finditer("$", line)]:
        if found := re.compile(_pattern(term)).search(line, start, apart.start()):
            return found
        start = apart.end()
    return None


@cache
def _pattern(term: str) -> str:
    """A term as a word of its own, maybe in the plural, not linked yet; digits stand for any digits."""
    return rf"(?<![\w\[-]){re.sub('[0-9]+', '[0-9]+', re.escape(term))}s?(?![\w\]-])"


def _title(meaning: str) -> str:
    return escaped(meaning).replace('"', "'")
