import subprocess
import sys
from pathlib import Path

import pytest

import headstream.tasks.storage.code_version as code_version_module
from headstream.tasks.places import ROOT
from headstream.tasks.storage.code_version import code_version

STAGE = "headstream.tasks.probing"
PROJECT = {
    "flows/__init__.py": "",
    "tasks/__init__.py": "",
    "tasks/probing.py": '''
"""Probes heads."""
import numpy
from headstream.models import probes
from .errors import Failure

def probe():
    """Probes one head."""
    from headstream.models.deep import late  # imported when it runs
    from headstream.models import found
    return probes.score() + late.score()
''',
    "tasks/errors.py": "class Failure(Exception): ...",
    "tasks/unreached.py": "x = 1",
    "models/__init__.py": "",
    "models/probes.py": "import headstream.models.maths as maths\n\ndef score() -> int:\n    return maths.double(1)\n",
    "models/maths.py": "def double(x):\n    return 2 * x\n",
    "models/deep/__init__.py": "from ..scales import SCALE",
    "models/deep/late.py": "from . import sibling\nfrom .sibling import *\n\ndef score():\n    return 1\n",
    "models/deep/sibling.py": "x = 1",
    "models/scales.py": "SCALE = 'linear'",
    "models/found/__init__.py": "def modules():\n    return list(iter_modules(__path__))",
    "models/found/plain.py": "from headstream.models.reached_by_found import x",
    "models/found/inner/deep.py": "x = 1",
    "models/reached_by_found.py": "x = 1",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, source in PROJECT.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(source)
    return tmp_path


def version(project: Path, **edits: str) -> str:
    """The stage's version as a new process sees it, some files (by path) having been given new sources."""
    for name, source in edits.items():
        (project / name).write_text(source)
    code_version.cache_clear()
    code_version_module._source.cache_clear()
    code_version_module._file_of.cache_clear()
    return code_version(STAGE, project)


def edited(name: str, old: str, new: str) -> dict[str, str]:
    assert old in PROJECT[name]
    return {name: PROJECT[name].replace(old, new, 1)}


def test_is_16_hex_digits_and_repeatable(project):
    first = version(project)
    assert first == version(project)
    assert len(first) == len(bytes.fromhex(first).hex()) == 16


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("tasks/probing.py", '"""Probes heads."""', '"""Probes every head."""'),
        ("tasks/probing.py", '"""Probes heads."""', ""),
        ("tasks/probing.py", '"""Probes one head."""', "'''Probes it.'''"),
        ("tasks/probing.py", "# imported when it runs", "# imported late"),
        ("models/maths.py", "    return 2 * x", "\n\n    # twice\n    return (2 *  x)"),
        ("tasks/unreached.py", "x = 1", "x = 2"),
        ("flows/__init__.py", "", "x = 2"),
    ],
)
def test_stays_with_an_edit_that_computes_the_same(project, name, old, new):
    assert version(project) == version(project, **edited(name, old, new))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("tasks/probing.py", "probes.score() +", "probes.score() -"),
        ("models/probes.py", "-> int", "-> float"),
        ("models/maths.py", "2 * x", "3 * x"),
        ("models/scales.py", "'linear'", "'logarithmic'"),
        ("models/deep/late.py", "return 1", "return 2"),
        ("models/deep/sibling.py", "x = 1", "x = 2"),
        ("models/found/plain.py", "import x", "import x as y"),
        ("models/found/inner/deep.py", "x = 1", "x = 2"),
        ("models/reached_by_found.py", "x = 1", "x = 2"),
        ("tasks/errors.py", "Exception", "ValueError"),
        ("models/__init__.py", "", "x = 1"),
        ("tasks/__init__.py", "", "x = 1"),
    ],
)
def test_changes_with_an_edit_in_what_it_reaches(project, name, old, new):
    assert version(project) != version(project, **edited(name, old, new))


def test_changes_when_modules_swap_their_code(project):
    swapped = {"models/probes.py": PROJECT["models/maths.py"], "models/maths.py": PROJECT["models/probes.py"]}
    assert version(project) != version(project, **swapped)


@pytest.mark.parametrize(
    "module", ["headstream.tasks.probin", "headstream.tasks.probing.probe", "no_such", "no.such", ""]
)
def test_module_that_does_not_exist(project, module):
    with pytest.raises(ModuleNotFoundError, match="there is no module"):
        code_version(module, project)


def test_this_repository():
    assert code_version("headstream.tasks.storage.store") == code_version("headstream.tasks.storage.store")
    assert code_version("headstream.tasks.storage.store") != code_version("headstream.tasks.storage.code_version")


def test_imports_nothing():
    program = (
        "import sys; from headstream.tasks.storage.code_version import code_version as version;"
        "version('headstream.tasks.storage.store');"
        "assert 'headstream.tasks.storage.store' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_a_module_of_a_users_own_counts_with_what_it_reaches(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    for name, imported in (("one_stage", "headstream.tasks.storage.store"), ("other_stage", "json")):
        (tmp_path / f"{name}.py").write_text(f"import {imported}\n")
    one, other = (code_version_module.reached_modules(name) for name in ("one_stage", "other_stage"))
    assert {"one_stage", "headstream.tasks.storage.store"} <= one.keys()
    assert other.keys() == {"other_stage"}
