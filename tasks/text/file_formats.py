"""Formats of source files, by the suffix of the name and, where that leaves it open, by the first bytes."""

import re
from typing import Literal

from headstream.tasks.files.non_text import BOM

TextFormat = Literal["conllu", "json lines", "json", "csv", "text"]
RECORD_SUFFIXES = (".jsonl", ".ndjson", ".parquet", ".conllu")
TABLE_SUFFIXES = (".json", ".csv", ".tsv")  # which as often hold settings or measurements as text
PROSE_SUFFIXES = (".txt", ".text", ".md", ".rst", ".tex", ".org")
# fmt: off
CODE_SUFFIXES = (
    ".c", ".cc", ".cpp", ".cs", ".go", ".h", ".hpp", ".hs", ".java", ".jl", ".js", ".jsx", ".kt", ".lua", ".ml", ".php",
    ".pl", ".py", ".pyi", ".r", ".rb", ".rs", ".scala", ".sh", ".sql", ".swift", ".ts", ".tsx",
)
# fmt: on
TEXT_SUFFIXES = frozenset(RECORD_SUFFIXES + PROSE_SUFFIXES + CODE_SUFFIXES)

_OBJECT = re.compile(rb"""\s*(?:\[\s*)?\{\s*["}]""")


def text_format(suffix: str, head: bytes) -> TextFormat:
    """The format of a text file: by its suffix or, for JSON and unknown suffixes, by its first bytes."""
    match suffix:
        case ".conllu":
            return "conllu"
        case ".csv" | ".tsv":
            return "csv"
    head = head.removeprefix(BOM)
    if suffix not in (".json", ".jsonl", ".ndjson") and (
        suffix in PROSE_SUFFIXES + CODE_SUFFIXES or not _OBJECT.match(head)
    ):
        return "text"
    first, line_end, _ = head.lstrip().partition(b"\n")
    goes_on = line_end and not first.rstrip().endswith(b"}")  # an object over several lines
    return "json" if first.startswith(b"[") or (first.startswith(b"{") and goes_on) else "json lines"
