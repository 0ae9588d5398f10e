"""Under which names a study's results are published."""

import itertools
import re

from headstream.tasks.report.publishing import artifact_key


def test_no_two_studies_share_an_artifact_of_prefect():
    tails = ("".join(tail) for n in range(5) for tail in itertools.product("a1-_", repeat=n))
    names = [f"a{tail}" for tail in tails]
    keys = {artifact_key("report", name) for name in names}
    assert len(keys) == len(names)
    assert all(re.fullmatch("[a-z0-9-]+", key) for key in keys)
    assert artifact_key("report", "my-study") == "report-my-study"
    assert artifact_key("report", "my_study") == "report--2--my-study"
