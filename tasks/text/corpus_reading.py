"""A corpus on disk: its documents in one Parquet file, with facts about all of them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

DOCUMENTS = "documents.parquet"
DOCUMENT_SCHEMA = pa.schema(
    {"document": pa.int64(), "split": pa.string(), "source": pa.string(), "part": pa.int32(), "text": pa.string()}
)


class Document(NamedTuple):
    """A row of the corpus: part number `part` of a document, in `split`, from the file named `source`."""

    document: int
    split: str
    source: str
    part: int
    text: str


def corpus_facts(folder: Path) -> dict[str, Any]:
    """The facts that `write_corpus` returned when it wrote `folder`."""
    facts: dict[str, Any] = json.loads(pq.read_metadata(folder / DOCUMENTS).metadata[b"corpus"])
    return facts


def read_documents(folder: Path, split: str | None = None) -> Iterator[Document]:
    """The documents that `write_corpus` wrote, of one split or of both, a few megabytes at a time."""
    with pq.ParquetFile(folder / DOCUMENTS) as table:
        for group in range(table.num_row_groups):
            rows = table.read_row_group(group)
            if split is not None:
                rows = rows.filter(pc.equal(rows["split"], split))
            yield from map(Document._make, zip(*(column.to_pylist() for column in rows.columns), strict=True))
