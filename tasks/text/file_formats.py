"""How a source file is to be read: as the suffix of its name says, and as it begins where that leaves it open."""

import re
from typing import Literal

from headstream.tasks.files.non_text import BOM

TextFormat = Literal["conllu", "json lines", "json", "csv", "text"]
RECORDS = (".jsonl", ".ndjson", ".parquet", ".conllu")
TABLES = (".json", ".csv", ".tsv")  # as often settings or measurements as text
PROSE = (".txt", ".text", ".md", ".rst", ".tex", ".org")
# fmt: off
CODE = (
    ".c", ".cc", ".cpp", ".cs", ".go", ".h", ".hpp", ".hs", ".java", ".jl", ".js", ".jsx", ".kt", ".lua", ".ml", ".php",
    ".pl", ".py", ".pyi", ".r", ".rb", ".rs", ".scala", ".sh", ".sql", ".swift", ".ts", ".tsx",
)
# fmt: on
ALWAYS_TEXT = frozenset(RECORDS + PROSE + CODE)

_OBJECT = re.compile(rb"""\s*(?:\[\s*)?\{\s*["}]""")


def text_format(suffix: str, head: bytes) -> TextFormat:
    """How text is to be read: as its suffix says, but JSON, and what has no known suffix, as they look."""
    match suffix:
        case ".conllu":
            return "conllu"
        case ".csv" | ".tsv":
            return "csv"
    head = head.removeprefix(BOM)
    if suffix not in (".json", ".jsonl", ".ndjson") and (suffix in PROSE + CODE or not _OBJECT.match(head)):
        return "text"
    first, line_end, _ = head.lstrip().partition(b"\n")
    goes_on = line_end and not first.rstrip().endswith(b"}")  # an object over several lines
    return "json" if first.startswith(b"[") or (first.startswith(b"{") and goes_on) else "json lines"
