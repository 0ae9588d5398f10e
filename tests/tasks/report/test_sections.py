"""Sections of a report are found by looking: one folder has all that is a section's own."""

import builtins
import io
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from invented_study import Model, write_measurements, write_warehouse
from rendered import render_report

from headstream.tasks.graph.artifact_specs import RESOURCES
from headstream.tasks.places import ROOT
from headstream.tasks.report import sections
from headstream.tasks.report.explorer.study_tables import study_tables
from headstream.tasks.report.glossary import meanings
from headstream.tasks.results import study_results
from headstream.tasks.results.study_results import QUERY_FOLDERS
from headstream.tasks.storage.code_version import reached_modules
from headstream.tasks.study.stages import REPORT

SHIPPED = Path(sections.__file__).parent
FIGURES = sections.figures().keys()
TOY = {
    "__init__.py": "ORDER = 31",
    "section.md.jinja": """
{% call page.part("## Toys") %}
{{ page.figure("toy_bars") }}

{{ page.table("toys") }}
{% endcall %}
""",
    "toys.sql": """-- Kinds of model, and their layers.
SELECT DISTINCT label, n_layers FROM labelled_models WHERE study = $study
""",
    "explorer_toys.sql": """-- Models.
SELECT model_id FROM study_models WHERE study = $study
""",
    "toy_drawing.py": """
from headstream.tasks.report.figures.style import panel
from headstream.tasks.report.pictures import Picture
from headstream.tasks.results.study_results import StudyResults


def toy_bars(results: StudyResults) -> list[Picture]:
    figure, axes = panel(2.0)
    axes.bar(["a"], [depth(results)])
    return [Picture("toys", f"It has {depth(results)} layers.", ("toys",), figure, "A bar.")]


def depth(results: StudyResults) -> int:
    return results.rows("toys")[0]["n_layers"]
""",
}


@pytest.fixture
def toy(tmp_path, monkeypatch) -> Iterator[None]:
    """A folder in which one more section is looked for."""
    folder = tmp_path / "sections" / "toys"
    folder.mkdir(parents=True)
    for name, content in TOY.items():
        (folder / name).write_text(content)
    monkeypatch.setattr(sections, "__path__", [*sections.__path__, str(folder.parent)])
    monkeypatch.setattr(study_results, "QUERY_FOLDERS", (*QUERY_FOLDERS, folder.parent))
    yield
    for name in [name for name in sys.modules if name.startswith(f"{sections.__name__}.toys")]:
        del sys.modules[name]


def test_a_section_is_one_folder(toy, tmp_path):
    report = tmp_path / "report"
    report.mkdir()
    render_report(write_measurements(tmp_path / "w.duckdb", Model()), "invented", report)
    text = (report / "report.md").read_text()
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings[headings.index("Models") + 1] == "Toys"
    section = text.partition("## Toys\n\n")[2].partition("\n\n## ")[0]
    assert section == (
        "![toys](figures/toys.svg)\n\nA bar. It has 2 layers. [SQL](queries/toys.sql)\n\n"
        "| label | n layers |\n| --- | ---: |\n| 2L4H | 2 |\n\n[SQL](queries/toys.sql)"
    )
    assert (report / "figures" / "toys.svg").is_file()
    assert (report / "queries" / "toys.sql").is_file()


def test_what_a_section_adds_is_in_the_explorer(toy, tmp_path):
    with study_results.open_results(write_measurements(tmp_path / "w.duckdb", Model()), "invented") as results:
        assert study_tables(results)["toys"] == {"model_id": [Model().model_id]}


def test_a_helper_of_a_figure_is_no_figure(toy):
    assert sections.figures().keys() - FIGURES == {"toy_bars"}


def test_every_section_and_query_has_a_name_and_a_place_of_its_own():
    places = Counter(section.ORDER for section in sections._sections())
    queries = Counter(path.stem for folder in QUERY_FOLDERS for path in folder.rglob("*.sql"))
    assert [name for name, n in (places + queries).items() if n > 1] == []


def test_every_figure_is_asked_for_and_every_query_read():
    templates = "".join(path.read_text() for path in SHIPPED.rglob("*.jinja"))
    assert {*re.findall(r'page\.figure\("(\w+)"\)', templates)} == FIGURES
    sources = [*SHIPPED.rglob("*.jinja"), *(ROOT / "tasks" / "report").rglob("*.py")]
    said = set(re.findall(r'"(\w+)"', "".join(path.read_text() for path in sources)))
    asked = {path.stem for folder in QUERY_FOLDERS for path in folder.rglob("*.sql") if path.stem[:9] != "explorer_"}
    assert asked <= said


def test_every_figure_counts_for_the_report():
    reached = reached_modules(REPORT.module)
    modules = {path.relative_to(SHIPPED).with_suffix("").parts for path in SHIPPED.rglob("*.py")} - {("__init__",)}
    names = {".".join((sections.__name__, *parts)).removesuffix(".__init__") for parts in modules}
    assert names <= reached.keys()
    assert len(names) > len(sections.section_names())


def test_every_file_that_a_report_reads_counts_for_it(tmp_path, monkeypatch):
    read: set[Path] = set()
    open_file = io.open

    def opened(file, *arguments, **options):
        if isinstance(file, str | Path):
            read.add(Path(file).resolve())
        return open_file(file, *arguments, **options)

    meanings.cache_clear()
    monkeypatch.setattr(builtins, "open", opened)
    monkeypatch.setattr(io, "open", opened)
    render_report(write_warehouse(tmp_path / "w.duckdb", Model(n_heads=2)), "invented", tmp_path)
    ours = {path for folder in ("data", "reports", "tasks") for path in read if path.is_relative_to(ROOT / folder)}
    assert ROOT / "reports" / "glossary.toml" in ours
    assert ours <= {path for pattern in RESOURCES for path in ROOT.glob(pattern)}


def test_a_wheel_has_every_file_that_counts_for_a_report():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    shipped = {path for pattern in settings["package-data"]["headstream"] for path in ROOT.glob(pattern)}
    assert {path for pattern in RESOURCES for path in ROOT.glob(pattern)} <= shipped
    assert all((path.parent / "__init__.py").is_file() for path in SHIPPED.rglob("*.py"))
