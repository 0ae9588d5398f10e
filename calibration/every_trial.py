"""All that is tried, in the order of the table."""

from calibration import circuits, claims, compositions, intervals, phase_changes, probes, redundancy

TRIALS = [
    *intervals.TRIALS,
    *claims.TRIALS,
    *compositions.TRIALS,
    *circuits.TRIALS,
    *redundancy.TRIALS,
    *phase_changes.TRIALS,
    *probes.TRIALS,
]
