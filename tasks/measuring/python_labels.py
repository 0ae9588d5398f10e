"""Labels of every byte of a source text, for probes, by Python's own tokenizer and parser."""

import ast
import io
import keyword
import re
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LEXICAL_CLASSES = ("whitespace", "keyword", "name", "number", "string", "comment", "operator")
# What other text than Python, if it parses, hardly has. Words, lists of numbers, JSON and `key = value` all parse.
CODE: tuple[type[ast.AST], ...] = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
CODE += (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
CODE += (ast.Lambda, ast.comprehension)
UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError)
OPENING_QUOTE = re.compile(r"\w*('''|\"\"\"|'|\")")

_Labels = NDArray[np.int64]  # one a byte, -1 where there is none


@dataclass(frozen=True)
class PythonLabels:
    """Labels of each byte; what is open is so after the byte."""

    lexical_class: _Labels  # index in LEXICAL_CLASSES: soft keywords are names, white space is what is between lexemes
    bracket_depth: _Labels  # brackets that are open
    in_string: _Labels  # 1 where a string literal is open, its replacement fields included
    indentation: _Labels  # level of the logical line; none in blank lines and in comments on lines of their own
    name_being_defined: _Labels  # of names: 1 where def or class, a parameter or whatever else ast stores to binds them
    opening_bracket: _Labels  # of closing brackets: the byte that opens them


class Lexeme(NamedTuple):
    """A piece of source text: an index in LEXICAL_CLASSES and its bytes, `end` excluded."""

    kind: int
    start: int
    end: int
    text: str


def python_labels(text: str) -> PythonLabels | None:
    """Labels of a Python source text with Unix line ends; None of other text.

    Python source is what parses and has an import, a compound statement, a lambda or a comprehension: that a text
    parses is no evidence.
    """
    source = _Source(text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as of "\d"
            tree = ast.parse(text)
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except UNPARSABLE:
        return None
    if not any(isinstance(node, CODE) for node in ast.walk(tree)):
        return None
    lexemes = list(_lexemes(source, tokens))
    depth, opening = _brackets(lexemes, source.n_bytes)
    return PythonLabels(
        lexical_class=_filled(source.n_bytes, [(lexeme.start, lexeme.end, lexeme.kind) for lexeme in lexemes], 0),
        bracket_depth=depth,
        in_string=_in_string(lexemes, source.n_bytes),
        indentation=_filled(source.n_bytes, list(_logical_lines(source, tokens))),
        name_being_defined=_names(lexemes, _bound(source, tree), source.n_bytes),
        opening_bracket=opening,
    )


class _Source:
    """A text whose places, given by row and column, are found in its UTF-8 bytes."""

    def __init__(self, text: str) -> None:
        self._lines = list(io.StringIO(text))  # as the tokenizer has them: str.splitlines ends lines at more signs
        self._starts = np.cumsum([0, *(len(line.encode()) for line in self._lines)]).tolist()
        self.n_bytes = self._starts[-1]

    def line_start(self, row: int) -> int:
        """The first byte of a row, counted from 1."""
        return self._starts[row - 1]

    def byte(self, place: tuple[int, int]) -> int:
        """The byte at a row and a column in characters."""
        row, column = place
        if row > len(self._lines):
            return self.n_bytes
        return self._starts[row - 1] + len(self._lines[row - 1][:column].encode())


def _lexemes(source: _Source, tokens: list[tokenize.TokenInfo]) -> Iterator[Lexeme]:
    """The text between white space, in order; since Python 3.12 an f-string comes in pieces, here joined."""
    opened: list[tokenize.TokenInfo] = []
    for token in tokens:
        name = tokenize.tok_name[token.type]
        if name.endswith("STRING_START"):
            opened.append(token)
        elif name.endswith("STRING_END"):
            first = opened.pop()
            if not opened:
                yield _lexeme(source, "string", first, token)
        elif not opened and (kind := _kind(name, token.string)):
            yield _lexeme(source, kind, token, token)


def _lexeme(source: _Source, kind: str, first: tokenize.TokenInfo, last: tokenize.TokenInfo) -> Lexeme:
    return Lexeme(LEXICAL_CLASSES.index(kind), source.byte(first.start), source.byte(last.end), first.string)


def _kind(name: str, text: str) -> str | None:
    if name == "NAME":
        return "keyword" if keyword.iskeyword(text) else "name"
    return {"NUMBER": "number", "STRING": "string", "COMMENT": "comment", "OP": "operator"}.get(name)


def _filled(n_bytes: int, spans: list[tuple[int, int, int]], rest: int = -1) -> _Labels:
    labels = np.full(n_bytes, rest)
    for start, end, label in spans:
        labels[start:end] = label
    return labels


def _brackets(lexemes: list[Lexeme], n_bytes: int) -> tuple[_Labels, _Labels]:
    change, opening = np.zeros(n_bytes, np.int64), np.full(n_bytes, -1)
    opened: list[int] = []
    for lexeme in lexemes:
        if lexeme.text in ("(", "[", "{"):
            opened.append(lexeme.start)
            change[lexeme.start] = 1
        elif lexeme.text in (")", "]", "}"):
            opening[lexeme.start] = opened.pop()
            change[lexeme.start] = -1
    return change.cumsum(), opening


def _in_string(lexemes: list[Lexeme], n_bytes: int) -> _Labels:
    change = np.zeros(n_bytes, np.int64)
    for lexeme in lexemes:
        if lexeme.kind == LEXICAL_CLASSES.index("string") and (quote := OPENING_QUOTE.match(lexeme.text)):
            change[lexeme.start + quote.end() - 1] += 1
            change[lexeme.end - 1] -= 1
    return change.cumsum()


def _logical_lines(source: _Source, tokens: list[tokenize.TokenInfo]) -> Iterator[tuple[int, int, int]]:
    """Each statement's bytes, from its first physical line to its last one's end, and its level of indentation."""
    level, start = 0, -1
    for token in tokens:
        if token.type == tokenize.INDENT:
            level += 1
        elif token.type == tokenize.DEDENT:
            level -= 1
        elif token.type == tokenize.NEWLINE:
            yield start, source.byte(token.end), level
            start = -1
        elif start < 0 and token.type not in (tokenize.NL, tokenize.COMMENT):
            start = source.line_start(token.start[0])


def _bound(source: _Source, tree: ast.AST) -> set[int]:
    """The bytes at which parameters and names that are stored to start.

    Names within f-strings are left out: up to Python 3.11 their places are wrong.
    """
    bound, waiting = set(), [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)):
            bound.add(source.line_start(node.lineno) + node.col_offset)  # the one place in bytes
        if not isinstance(node, ast.JoinedStr):
            waiting.extend(ast.iter_child_nodes(node))
    return bound


def _names(lexemes: list[Lexeme], bound: set[int], n_bytes: int) -> _Labels:
    spans, before = [], ""
    for lexeme in lexemes:
        if lexeme.kind == LEXICAL_CLASSES.index("name"):
            spans.append((lexeme.start, lexeme.end, int(lexeme.start in bound or before in ("def", "class"))))
        before = lexeme.text
    return _filled(n_bytes, spans)
