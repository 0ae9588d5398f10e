"""Names of splits and files, and a schema, shared by writers and readers of corpora and tokens."""

import pyarrow as pa

SPLITS = ("train", "validation")
PART_OF_SPEECH = "part_of_speech.parquet"
DOCUMENT_STARTS = "{}_documents.npy"  # of each split, if no BOS marks where documents begin
WORD_SCHEMA = pa.schema(
    # A document's number among those of validation text, and the bytes of its text from start to end (excluded).
    {"document": pa.int64(), "start": pa.int32(), "end": pa.int32(), "part_of_speech": pa.string()}
)
