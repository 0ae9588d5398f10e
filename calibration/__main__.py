"""Try everything, print a line a trial, write README.md: `python -m calibration`. Exit code 1 if a trial fails."""

import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import torch

from calibration.every_trial import TRIALS
from calibration.page import PAGE, page, table_line
from calibration.trials import Row


def run(index: int) -> Row:
    """A trial, in a process of its own."""
    return TRIALS[index].run()


def main() -> int:
    """Run all trials side by side, a thread each."""
    rows = []
    with ProcessPoolExecutor(initializer=partial(torch.set_num_threads, 1)) as pool:
        for row in pool.map(run, range(len(TRIALS))):
            print(table_line(row), flush=True)
            rows.append(row)
    PAGE.write_text(page(rows))
    return int(any(row.verdict == "fails" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
