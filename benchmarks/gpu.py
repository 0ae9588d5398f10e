"""Training and measuring on a GPU: whether it finds what a CPU does, and how fast it is.

Each section runs in a process of its own, so that one which fails, hangs or upsets the device leaves the others alone.

make gpu; under eight minutes on one GPU. Prints what gpu.md holds then.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import torch

from benchmarks.gpu_sections import SECTIONS, Bench, Row
from headstream.tasks.study.corpus_config import CorpusConfig
from headstream.tasks.study.tokenizer_config import TokenizerConfig
from headstream.tasks.text.corpus_writing import write_corpus
from headstream.tasks.text.token_writing import write_tokens

PAGE = Path(__file__).parent / "gpu.md"
SECONDS, SECONDS_A_SECTION = 470, 120
VERDICTS = {True: "holds", False: "**missed**", None: ""}


class Outcome(NamedTuple):
    """What came of a section: its rows, and why there are no more of them if it failed."""

    section: str
    rows: Sequence[Row]
    failure: str | None
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether it ran to its end, and nothing was missed."""
        return self.failure is None and all(row.holds is not False for row in self.rows)


def run_apart(section: str, device: str, folder: Path, limit: float) -> Outcome:
    """Run a section in a process of its own, of at most so many seconds."""
    command = [sys.executable, "-m", "benchmarks.gpu", section, device, str(folder)]
    started = time.perf_counter()
    with (folder / f"{section}.out").open("w+") as told, (folder / f"{section}.err").open("w+") as log:
        process = subprocess.Popen(command, stdout=told, stderr=log, start_new_session=True)
        try:
            code: int | None = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        told.seek(0)
        log.seek(0)
        rows = [Row(*json.loads(line)) for line in told if line.startswith("[")]
        last = next((line for line in reversed(log.read().splitlines()) if line.strip()), f"exit code {code}")
    failure = None if code == 0 else f"not done after {limit:.0f} s" if code is None else last.strip()
    return Outcome(section, rows, failure, time.perf_counter() - started)


def table(outcomes: Sequence[Outcome]) -> str:
    """What was measured, in markdown."""
    lines = ["| what | measured | wanted | |", "| --- | --- | --- | --- |"]
    for outcome in outcomes:
        rows = [(*row[:3], VERDICTS[row.holds]) for row in outcome.rows]
        if outcome.failure is not None:
            rows.append((outcome.section, outcome.failure.replace("|", "\\|"), "runs", "**failed**"))
        lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


def main() -> int:
    """Run every section; 0 if all hold, 1 if not, 2 where there is no GPU."""
    if not torch.cuda.is_available():
        print("`make gpu` needs a CUDA GPU, and torch sees none here.", file=sys.stderr)
        return 2
    started, outcomes = time.perf_counter(), []
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for place in ("corpus", "tokens"):
            (folder / place).mkdir()
        write_corpus(CorpusConfig(), folder / "corpus")
        write_tokens(TokenizerConfig(), folder / "corpus", folder / "tokens")
        for section in SECTIONS:
            left = max(0.0, SECONDS - (time.perf_counter() - started))
            outcomes.append(run_apart(section, "cuda", folder, min(left, SECONDS_A_SECTION)))
            print(f"{section}: {outcomes[-1].failure or 'ran'}, {outcomes[-1].seconds:.0f} s", flush=True)
    device = f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}"
    opening = f"# On a GPU\n\n`make gpu` wrote this on {date.today()}: {device}.\n\n"
    PAGE.write_text(f"{opening}{table(outcomes)}\n")
    print(PAGE.read_text())
    return 0 if all(outcome.holds for outcome in outcomes) else 1


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(main())
    section, device, folder = sys.argv[1:]
    SECTIONS[section](Bench(device, Path(folder)), lambda row: print(json.dumps(row), flush=True))
