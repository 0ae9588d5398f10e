"""A report as reports/sample keeps it: without its explorer, and with links to the queries of the repository.

python -m headstream.tasks.report.sample STUDY
"""

import os
import re
import shutil
import sys
from pathlib import Path

from headstream.tasks import places
from headstream.tasks.results.study_results import query_files

SAMPLES = places.ROOT / "reports" / "sample"
INVITATION = re.compile(r"^\[[^\]]*\]\(explorer\.html\).*\n\n", re.MULTILINE)  # a paragraph that begins so
TO_QUERY = re.compile(r"\]\(queries/(\w+)\.sql\)")
TO_EXPLORER = re.compile(r"\[([^\]]*)\]\(explorer\.html[^)]*\)")


def keep_sample(report: Path, sample: Path) -> None:
    """Replace the sample by what a study's report says now.

    Raises: FileNotFoundError if the study has no report.
    """
    page = TO_EXPLORER.sub(r"\1", INVITATION.sub("", (report / "report.md").read_text(encoding="utf-8")))
    files = query_files()
    page = TO_QUERY.sub(lambda link: f"]({os.path.relpath(files[link[1]], sample)})", page)
    shutil.rmtree(sample, ignore_errors=True)
    shutil.copytree(report / "figures", sample / "figures")
    (sample / "report.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not (places.report_folder(sys.argv[1]) / "report.md").exists():
        sys.exit("a sample needs the name of a study that has a report. Run `headstream report STUDY` first.")
    keep_sample(places.report_folder(sys.argv[1]), SAMPLES / sys.argv[1])
