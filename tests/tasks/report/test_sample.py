import re

from headstream.tasks.places import ROOT
from headstream.tasks.report.sample import keep_sample


def test_a_sample_leads_to_what_the_repository_has(tmp_path):
    report, sample = tmp_path / "generated", tmp_path / "sample"
    (report / "figures").mkdir(parents=True)
    (report / "figures" / "a.svg").write_text("<svg/>")
    (report / "report.md").write_text(
        "- Keys of [L1H0](explorer.html#2L4H/L1H0) read [z].\n\n[Explore it](explorer.html): heads.\n\n"
        "![a](figures/a.svg)\n\n[SQL](queries/answer.sql) [SQL](queries/costs.sql)\n"
    )
    (sample / "figures").mkdir(parents=True)
    (sample / "figures" / "of-before.svg").write_text("<svg/>")
    keep_sample(report, sample)
    text, _, links = (sample / "report.md").read_text().rpartition("\n\n")
    assert text == "- Keys of L1H0 read [z].\n\n![a](figures/a.svg)"
    found = [(sample / link).resolve() for link in re.findall(r"\[SQL\]\((\S+)\)", links)]
    assert found == [ROOT / "reports/queries/answer.sql", ROOT / "tasks/report/sections/costs/costs.sql"]
    assert [path.name for path in (sample / "figures").iterdir()] == ["a.svg"]
