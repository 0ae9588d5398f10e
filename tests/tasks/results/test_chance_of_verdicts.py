"""The p-values of verdicts, and which of them survive a false-discovery rate."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from headstream.tasks.results.claim_files import read_claims
from headstream.tasks.results.claim_values import Value
from headstream.tasks.results.claim_verdicts import agreement_chance, of_configuration
from headstream.tasks.results.claims import _tell_survivors

(GAIN,) = (claim for claim in read_claims() if claim.claim_id == "composition-matters")  # a mean over seeds, above 0.2


def configuration(*values):
    own = [Value("", seed, value, None, 1.0) for seed, value in enumerate(values)]
    return of_configuration(GAIN, "", own, own)


@pytest.mark.parametrize("values", [(1.0, 1.2, 1.1), (0.5, 0.9, 0.7, 0.8, 0.6), (0.01, 0.02, 0.015)])
def test_the_p_value_of_a_mean_is_that_of_students_test_against_the_bar(values):
    found = configuration(*values)
    assert found["verdict"] == ("holds" if np.mean(values) > GAIN.rule.low else "fails")
    assert found["chance"] == pytest.approx(ttest_1samp(values, GAIN.rule.low).pvalue, rel=0.02)


def test_what_is_not_decided_has_none():
    found = configuration(0.1, 0.9, 0.3)
    assert (found["verdict"], found.get("chance")) == ("undecided", None)


def parts(**chances):
    return [{"verdict": verdict.rstrip("_"), "chance": chance} for verdict, own in chances.items() for chance in own]


def test_over_configurations_it_is_that_of_the_last_that_it_takes():
    assert agreement_chance(parts(holds=[0.01]), "holds") == 0.01
    assert agreement_chance(parts(holds=[0.01, 0.001, 0.04]), "holds") == pytest.approx(2 * 0.01)  # two of three
    assert agreement_chance(parts(holds=[0.01, 0.001], undecided=[None]), "holds") == pytest.approx(2 * 0.01)
    assert agreement_chance(parts(holds=[0.01], undecided=[None, None]), "undecided") is None
    assert agreement_chance(parts(holds=[0.01, 0.002], fails=[0.003]), "depends") == pytest.approx(3 * 0.003)


def test_survivors_are_those_of_benjamini_and_hochberg():
    chances = [0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074]
    rows = [{"kind": "finding", "verdict": "holds", "chance": chance} for chance in chances]
    rows += [{"kind": "finding", "verdict": "undecided"}, {"kind": "finding", "verdict": "not tested"}]
    rows += [{"kind": "self-check", "verdict": "passes"}]
    _tell_survivors(rows)
    # of eight tested: 0.001 <= 0.05 / 8 and 0.008 <= 2 * 0.05 / 8, and no later one
    assert [row.get("survives") for row in rows] == [True, True, *[False] * 5, *[None] * 3]
    lower = [{"kind": "finding", "verdict": "holds", "chance": chance} for chance in (0.02, 0.03, 0.04, 0.05)]
    _tell_survivors(lower)
    assert all(row["survives"] for row in lower), "the last within its share carries those before"
