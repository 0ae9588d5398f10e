"""The report's figures, drawn from Python as the report draws them."""

import base64
import re

import pytest

import headstream as hs
from headstream.results_figures import Plot
from headstream.tasks import places
from headstream.tasks.report.drawing import draw
from headstream.tasks.report.figures.style import panel
from headstream.tasks.report.pictures import Picture
from headstream.tasks.results.study_results import open_results


@pytest.fixture(scope="module")
def results(home) -> hs.Results:
    return hs.open("ours")


def test_a_plot_is_the_reports_own_figure(results, tmp_path):
    with open_results(places.warehouse_file(), "ours") as opened:
        drawn = draw(opened, tmp_path, results.plots.index("context_over_training"), 1000, lambda fraction: None)
    (picture,) = drawn["context_over_training"]
    plot = results.plot("context_over_training")
    assert plot._repr_mimebundle_(include=None)["image/svg+xml"] == (tmp_path / picture.file).read_text()
    assert picture.sentence in repr(plot)
    assert picture.look in repr(plot)
    assert plot.figures == [plot.figure]


def test_several_pictures_are_shown_with_what_they_say():
    pictures = [Picture(f"map_{i}", f"Of <{i}>.", (), panel(1)[0]) for i in range(2)]
    shown = Plot("maps", pictures)._repr_mimebundle_()["text/html"]
    assert "Of &lt;1&gt;." in shown
    images = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)" alt="(\w+)"', shown)
    assert [name for _, name in images] == ["map_0", "map_1"]
    assert all(base64.b64decode(image).startswith(b"<?xml") for image, _ in images)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("context_over_trainin", r"Did you mean 'context_over_training'\? There are loss_over_size, .*cost_curves\.$"),
        ("zzz", r"^there is no figure 'zzz'\. There are loss_over_size, "),
        ("cost_curves", r"^cost_curves can't be drawn\. No picture: no costs were measured"),
        (3, "a figure's name must be text, got 3"),
    ],
)
def test_a_figure_that_can_not_be_drawn(results, name, message):
    with pytest.raises(hs.UserError, match=message) as error:
        results.plot(name)
    assert "\n" not in str(error.value)


def test_results_show_their_answer_and_models_as_a_table(results):
    shown = results._repr_html_()
    assert "Does the door open?" in shown
    assert all(line in shown for line in results.answer if "<" not in line and "'" not in line and '"' not in line)
    assert shown.count("<tr") == 1 + len(results.models)
    assert "<td>2L2-3H</td>" in shown


def test_names_from_outside_are_text(results):
    other = object.__new__(hs.Results)
    other.study, other.question, other.answer = "ours", "<script>1</script>", ["<img src=x>"]
    assert "<script" not in other._repr_html_()
    assert "<img" not in other._repr_html_()
