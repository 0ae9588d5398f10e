"""The door's own modules, beside modules of a user's that have the same names."""

import subprocess
import sys

import pytest

from headstream.own_modules import OWN
from tasks import places

BESIDE = """
import sys
import models, tasks.mine                    # the user's, before
import headstream as hs
assert type(hs.open("ours").model(seed=1).attention("the river runs")).__module__ == "headstream.opened_model"
import flows, models.later, tasks.mine as again   # and after
assert (models.WHOSE, again.WHOSE, models.later.WHOSE, flows.WHOSE) == ("mine",) * 4
import multiprocessing.forkserver
assert multiprocessing.forkserver._forkserver._preload_modules == ["__main__"]
print(hs.__file__)
"""


@pytest.mark.parametrize("packages", [True, False], ids=["packages", "namespaces"])
def test_modules_of_a_users_own_keep_their_names(home, tmp_path, packages, monkeypatch):
    for name in ("models/later", "tasks/mine", "flows/x"):
        file = tmp_path / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text("WHOSE = 'mine'")
    for name in ("models", "tasks", "flows"):
        (tmp_path / name / "__init__.py").write_text("WHOSE = 'mine'")
    (tmp_path / "notebook.py").write_text(BESIDE)
    monkeypatch.setenv("PYTHONPATH", str(places.ROOT))
    command = [sys.executable, "notebook.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, str(places.ROOT / "headstream" / "__init__.py")), done.stderr


def test_no_module_imports_another_by_a_name_that_would_not_be_read():
    """`import models.x` would bind the user's `models`; `from models.x import y` and `import models.x as x` don't."""
    for folder in OWN:
        for path in sorted((places.ROOT / folder).rglob("*.py")):
            lines = [line.split() for line in path.read_text().splitlines()]
            assert not [line for line in lines if line[:1] == ["import"] and line[1].split(".")[0] in OWN], path
