"""All that is tried, in the order of the table."""

from calibration import behaviours, circuits, claims, compositions, intervals, phase_changes, probes, redundancy

TRIALS = [
    *intervals.TRIALS,
    *claims.TRIALS,
    *compositions.TRIALS,
    *circuits.TRIALS,
    *behaviours.TRIALS,
    *redundancy.TRIALS,
    *phase_changes.TRIALS,
    *probes.TRIALS,
]
