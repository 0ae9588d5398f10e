"""The example notebook: it runs in a real kernel, and what it holds is what a reader sees."""

import nbformat
import pytest
from nbclient import NotebookClient

import headstream as hs
from headstream.tasks import places

PATH = places.ROOT / "examples" / "heads.ipynb"


def outputs_of(notebook) -> dict[str, str]:
    """The kinds of what each cell shows, by its id."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return {cell.id: ",".join(kind for output in cell.outputs for kind in sorted(output.data)) for cell in cells}


@pytest.mark.process
@pytest.mark.filterwarnings("ignore")  # those of the machinery around the kernel
def test_it_runs_in_a_kernel(home, tmp_path):
    notebook = nbformat.read(PATH, as_version=4)
    shown = outputs_of(notebook)
    for cell in notebook.cells:
        cell.source = cell.source.replace("quick", "ours").replace("2L4H", "2L2-3H")
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert outputs_of(notebook) == shown
    assert notebook.cells[1].outputs[0].data["text/plain"] == repr(hs.open("ours"))
    assert any("headstream-attention" in cell.outputs[0].data.get("text/html", "") for cell in notebook.cells[1::2])


def test_it_holds_pictures_and_little_else():
    notebook = nbformat.read(PATH, as_version=4)
    nbformat.validate(notebook)
    code = notebook.cells[1::2]
    assert len(code) == 10
    assert [cell.cell_type for cell in notebook.cells] == ["markdown", "code"] * 10
    assert [cell.execution_count for cell in code] == [*range(1, 11)]
    assert all(output.output_type == "execute_result" for cell in code for output in cell.outputs)
    assert "image/svg+xml" in outputs_of(notebook)["code-1"]
    text = PATH.read_text(encoding="utf-8")
    assert len(text) < 150_000
    assert str(places.home()) not in text
