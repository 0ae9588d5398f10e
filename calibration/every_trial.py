"""All that is tried, in the order of the table."""

from calibration import compositions, intervals, phase_changes, probes

TRIALS = [*intervals.TRIALS, *compositions.TRIALS, *phase_changes.TRIALS, *probes.TRIALS]
