"""Measure the corpus and token stages on generated text: `python -m benchmarks.corpus [MEGABYTES]`.

Prints each stage's speed and peak memory, its own process each; the speed of encoding relative to
`Tokenizer.encode_batch` alone on the same text, in turns; and the memory that one line of 200 MB takes.
"""

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from headstream.tasks.study.corpus_config import CorpusConfig
from headstream.tasks.study.tokenizer_config import TokenizerConfig
from headstream.tasks.text.byte_batches import byte_batches
from headstream.tasks.text.corpus_reading import corpus_facts, read_documents
from headstream.tasks.text.corpus_writing import write_corpus
from headstream.tasks.text.token_reading import Tokens
from headstream.tasks.text.token_writing import encode, write_tokens

SAMPLE_BYTES = 50_000_000
TURN_BYTES = 5_000_000
LINE_BYTES = 200_000_000


def generate(library: Path, path: Path, size: int) -> None:
    """JSON lines of documents made of the standard library's lines, shuffled."""
    write_corpus(CorpusConfig(), library)
    lines = [line for document in read_documents(library) for line in document.text.splitlines(keepends=True)]
    choose = random.Random(0)
    with path.open("w", encoding="utf-8") as file:
        while size > 0:
            start = choose.randrange(len(lines) - 1_000)
            text = "".join(choose.sample(lines[start : start + 1_000], 500))
            size -= len(text.encode())
            file.write(json.dumps({"text": text}) + "\n")


def compare(corpus: Path, tokens: Path) -> tuple[float, float]:
    """Megabytes per second of `encode` and of `encode_batch` alone, in turns over a sample of the training text."""
    opened = Tokens.open(tokens)
    tokenizer, bos = opened.tokenizer, opened.bos
    sized = ((document.text, len(document.text.encode())) for document in read_documents(corpus, "train"))
    runs: tuple[Callable[[list[str]], Any], ...] = (
        lambda texts: list(encode(tokenizer, texts, np.uint16, bos)),
        tokenizer.encode_batch,
    )
    seconds = [0.0, 0.0]
    size = 0
    for texts in islice(byte_batches(sized, TURN_BYTES), SAMPLE_BYTES // TURN_BYTES):
        size += sum(len(text.encode()) for text in texts)
        for turn, run in enumerate(runs):
            start = time.perf_counter()
            run(texts)
            seconds[turn] += time.perf_counter() - start
    return size / 1e6 / seconds[0], size / 1e6 / seconds[1]


def write_line(path: Path) -> None:
    """Write one line of 200 MB."""
    text = "".join(f"{number:08x}" for number in range(LINE_BYTES // 8))
    path.write_text(text if path.suffix == ".txt" else json.dumps({"text": text}), encoding="utf-8")


def measured(function: Callable[..., Any], *args: Any) -> tuple[Any, float, float]:
    """The function's result, seconds and peak megabytes, run in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(_measure, function, *args).result()


def _measure(function: Callable[..., Any], *args: Any) -> tuple[Any, float, float]:
    start = time.perf_counter()
    result = function(*args)
    return result, time.perf_counter() - start, peak_megabytes()


def peak_megabytes() -> float:
    """The most memory that this process had at once; `ru_maxrss` would count that of its parent before it began."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    (peak,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(peak.split()[1]) / 1024


def main(megabytes: int) -> None:
    """Generate text of that size, and measure every stage on it."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        library, corpus, tokens, line = (folder / name for name in ("library", "corpus", "tokens", "line"))
        for made in (library, corpus, tokens, line):
            made.mkdir()
        source = folder / "text.jsonl"
        measured(generate, library, source, megabytes * 1_000_000)
        config = CorpusConfig(paths=(str(source),))
        stages: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
            "write_corpus": (write_corpus, (config, corpus)),
            "write_tokens": (write_tokens, (TokenizerConfig(), corpus, tokens)),
        }
        for name, (stage, arguments) in stages.items():
            _, seconds, peak = measured(stage, *arguments)
            size = corpus_facts(corpus)["bytes"] / 1e6
            print(f"{name}: {size:,.0f} MB in {seconds:.1f} s, {size / seconds:.1f} MB/s, peak {peak:,.0f} MB")
        (ours, alone), *_ = measured(compare, corpus, tokens)
        print(f"encode: {ours:.2f} MB/s, encode_batch alone: {alone:.2f} MB/s, ratio {ours / alone:.2f}")
        for name in ("line.txt", "line.jsonl"):
            measured(write_line, line / name)
            _, seconds, peak = measured(write_corpus, CorpusConfig(paths=(str(line / name),)), line)
            print(f"one line of {LINE_BYTES / 1e6:.0f} MB, {name}: {seconds:.1f} s, peak {peak:,.0f} MB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)
