"""A whole study, from text to report, against plain float32 loops that only train the same models on as many tokens.

The loops are timed before and after each run, since a machine's speed may change meanwhile.

python -m benchmarks.study; a quarter of an hour on two cores
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import mean
from tempfile import TemporaryDirectory

import duckdb
import psutil
import torch

from benchmarks.training import MODEL, TOKENS_PER_STEP, usual_step
from headstream.tasks.machines.stopping import adopt_orphans
from headstream.tasks.studies.known_studies import find_study
from headstream.tasks.study.analyses import ANALYSES
from headstream.tasks.study.schema import Study, read_study
from headstream.tasks.text.corpus_writing import write_corpus
from headstream.tasks.text.token_writing import write_tokens

STUDY = "quick"
PLAIN_SHARE = 8  # plain loops train on an eighth of the tokens, and their seconds are scaled


def plain_training(folder: Path, n_layers: int, tokens: int) -> None:
    """Train one model by a plain loop."""
    step = usual_step(folder, threads=1, architecture=MODEL.model_copy(update={"n_layers": n_layers}))
    for _ in range(tokens // TOKENS_PER_STEP):
        step()


def text_of(study: Study, folder: Path) -> Path:
    """A folder of the study's tokens."""
    corpus, tokens = folder / "corpus", folder / "tokens"
    for place in (corpus, tokens):
        place.mkdir()
    write_corpus(study.corpus, corpus)
    write_tokens(study.tokenizer, corpus, tokens)
    return tokens


def plain_seconds(study: Study, tokens: Path) -> float:
    """Wall-clock seconds of plain loops, one a core, the longest first."""
    cells = sorted(study.cells, key=lambda cell: -cell.architecture.n_layers)
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as processes:
        list(processes.map(abs, range(8)))  # started
        begun = time.perf_counter()
        work = [
            processes.submit(plain_training, tokens, c.architecture.n_layers, c.training.tokens // PLAIN_SHARE)
            for c in cells
        ]
        for future in work:
            future.result()
        return PLAIN_SHARE * (time.perf_counter() - begun)


def run_seconds(home: Path, study: str = STUDY) -> tuple[float, float]:
    """Wall-clock and processor seconds of `headstream run` with a home."""
    before, own = getrusage(RUSAGE_CHILDREN), {child.pid for child in psutil.Process().children()}
    begun = time.perf_counter()
    command = [str(Path(sys.executable).parent / "headstream"), "run", study]
    subprocess.run(command, env={**os.environ, "HEADSTREAM_HOME": str(home)}, check=True, capture_output=True)
    seconds = time.perf_counter() - begun
    _wait_for_orphans(own)
    after = getrusage(RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _wait_for_orphans(own: Collection[int]) -> None:
    """Wait for what the command left to end by itself: the servers of child processes. `own` are not among them."""
    for _ in range(60):
        left = [child for child in psutil.Process().children() if child.pid not in own]
        if not left:
            return
        psutil.wait_procs(left, timeout=1)


def stage_seconds(home: Path) -> tuple[float, float]:
    """How long all analyses together took, each on one thread, and the report."""
    with duckdb.connect(home / "data" / "warehouse.duckdb", read_only=True) as warehouse:
        rows: list[tuple[str, float]] = warehouse.execute("SELECT stage, seconds FROM artifacts").fetchall()
    manifests = Path(home / "data" / "store").glob("report/*/manifest.json")
    report = max(json.loads(file.read_text(encoding="utf-8"))["seconds"] for file in manifests)
    return sum(seconds for stage, seconds in rows if stage in ANALYSES), report


@contextmanager
def busy_core() -> Iterator[None]:
    """Have something else take as much of the machine as one process can."""
    process = get_context("spawn").Process(target=_multiply_matrices, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def _multiply_matrices() -> None:
    torch.set_num_threads(1)
    matrix = torch.eye(1024)
    while True:
        matrix = matrix @ matrix


RUNS: tuple[tuple[str, str, Callable[[], AbstractContextManager[None]]], ...] = (
    ("cold", "nothing cached", nullcontext),
    ("warm", "compiled code cached", nullcontext),
    ("loaded", "compiled code cached, beside a busy process", busy_core),
)


def main() -> dict[str, str]:
    """Print seconds and ratios of `RUNS` and of a run with nothing to do; returns what targets ask."""
    adopt_orphans(True)  # else processes whose parents end go uncounted
    study, found = read_study(find_study(STUDY)), {}
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        tokens = text_of(study, folder)
        for name, what, beside in RUNS:
            if name != "cold":
                shutil.copytree(folder / "cold" / "data" / "compiled", folder / name / "data" / "compiled")
            with beside():
                before = plain_seconds(study, tokens)
                seconds, processor = run_seconds(folder / name)
                after = plain_seconds(study, tokens)
            found[name] = f"{seconds / mean((before, after)):.2f}"
            print(
                f"run {STUDY}, {what}: {seconds:.1f} s, {processor:.0f} processor seconds; {found[name]} of plain"
                f" training of the same models, {before:.0f} s before and {after:.0f} s after",
                flush=True,
            )
        seconds, processor = run_seconds(folder / "warm")
        found["rerun"] = f"{seconds:.1f} s"
        print(f"run {STUDY}, nothing to do: {seconds:.1f} s, {processor:.0f} processor seconds")
        analyses, report = stage_seconds(folder / "warm")
        print(f"analyses: {analyses:.0f} processor seconds; report: {report:.1f} s")
        return found | {"analyses": f"{analyses:.0f} s", "report": f"{report:.1f} s"}


if __name__ == "__main__":
    main()
