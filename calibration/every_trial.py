"""All that is tried, in the order of the table."""

from calibration import compositions, intervals, probes

TRIALS = [*intervals.TRIALS, *compositions.TRIALS, *probes.TRIALS]
