"""The wheel alone, installed into an environment of its own, from a folder that has nothing to do with it."""

import json
import os
import subprocess
import sys
import sysconfig
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from prefect_database import put_prefect_database, shared_folder
from tiny import tiny_text
from waiting import until

from headstream.tasks import places
from headstream.tasks.machines.services import free_port
from headstream.tasks.places import ROOT

pytestmark = pytest.mark.process

STUDY = """name = "installed"
[corpus]
paths = ["{text}/*.txt"]
validation_fraction = 0.2
[tokenizer]
vocabulary = 270
[grid]
n_layers = [1]
[model]
d_model = 16
n_heads = 2
n_ctx = 16
[training]
tokens = 4000
batch_size = 8
warmup_steps = 5
checkpoints = 3
[analysis]
stages = ["behaviour"]
[analysis.behaviour]
loss_windows = 3
pattern_windows = 2
random_period_sequences = 2
passage_tokens = 6
"""


class Installed:
    """A virtual environment with the wheel, beside the packages of this one that Headstream needs."""

    def __init__(self, folder: Path, shared: Path) -> None:
        self.folder = folder
        ours = ("HEADSTREAM_", "PREFECT_", "PYTHONPATH")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
        self.bin = folder / "venv" / "bin"
        (packages,) = (folder / "venv").glob("lib/python*/site-packages")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
        aside = folder / "aside.cfg"  # so that nothing is written into the repository, or taken from an earlier build
        aside.write_text(f"[build]\nbuild_base = {folder}/build\n[egg_info]\negg_base = {folder}\n")
        wheel = [*pip, "wheel", ROOT, "--no-deps", "--no-build-isolation", "--no-index", "-w", folder]
        subprocess.run(wheel, check=True, env=clean | {"DIST_EXTRA_CONFIG": str(aside)})
        (self.wheel,) = folder.glob("*.whl")
        install = [*pip, "--python", self.bin / "python", "install", "--no-deps", "--no-index", self.wheel]
        subprocess.run(install, check=True, env=clean)
        (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
        self.elsewhere = folder / "elsewhere"
        self.elsewhere.mkdir()
        variables = {"XDG_DATA_HOME": str(folder / "data"), "XDG_CACHE_HOME": str(folder / "cache")}
        self.environment = clean | variables
        (prefect,) = self(
            "python", "-c", f"from {places.__name__} import prefect_cache; print(prefect_cache())"
        ).split()
        put_prefect_database(shared, Path(prefect))

    def __call__(self, *command: str | Path) -> str:
        """What a program of the environment prints, run from elsewhere."""
        program = [self.bin / str(command[0]), *command[1:]]
        done = subprocess.run(
            program, cwd=self.elsewhere, env=self.environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed"), shared_folder(tmp_path_factory.getbasetemp()))


@pytest.fixture(scope="module")
def ran(installed) -> str:
    study = installed.elsewhere / "installed.toml"
    study.write_text(STUDY.format(text=tiny_text()))
    printed = installed("headstream", "run", study)
    study.unlink()
    return printed


def test_its_home_is_in_the_users_data_folder(installed, ran):
    home = installed.folder / "data" / "headstream"
    assert ran.splitlines()[-1] == f"Report: {home}/reports/generated/installed/report.md"
    assert (home / "data" / "warehouse.duckdb").is_file()
    assert [*installed.elsewhere.iterdir()] == []


def test_every_question_is_answered_from_elsewhere(installed, ran):
    report = Path(installed("headstream", "report", "installed").strip())
    assert report.read_text().startswith("# installed\n")
    page = Path(installed("headstream", "explore", "installed", "--no-open").strip())
    assert "<title>" in page.read_text()
    assert json.loads(installed("headstream", "claims", "installed", "--format", "json"))
    assert "quick" in installed("headstream", "studies")


def test_python_opens_a_study(installed, ran):
    ask = "import headstream as hs; print(hs.__file__, hs.open('installed').model('1L2H').label)"
    printed = installed("python", "-c", ask)
    assert printed.startswith(str(installed.folder / "venv"))
    assert printed.split()[-1] == "1L2H"


def test_its_deployments_run_studies(installed, ran):
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    said = installed.folder / "up.txt"
    (made,) = (installed.folder / "cache" / "headstream").glob("prefect-*")  # that of `Installed`
    installed.environment["PREFECT_HOME"] = str(made)
    with said.open("wb") as out:
        command = [installed.bin / "headstream", "up", "--port", str(port)]
        up = subprocess.Popen(command, cwd=installed.elsewhere, env=installed.environment, stdout=out, stderr=out)
    try:
        until(lambda: f"{address}/artifacts" in said.read_text() or up.poll() is not None, 300)
        assert up.poll() is None, said.read_text()
        installed.environment["PREFECT_API_URL"] = f"{address}/api"
        weekly = "from prefect.deployments import run_deployment as run; print(run('check/weekly', timeout=200).state)"
        assert installed("python", "-c", weekly).startswith("Completed")
    finally:
        up.terminate()
        up.wait(60)


def test_the_version_stands_in_one_place(installed):
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert installed.wheel.name.split("-")[1] == said == version("headstream")
    assert installed("headstream", "--version") == f"headstream {said}\n"
    assert "version" not in {line.split(":")[0] for line in (ROOT / "CITATION.cff").read_text().splitlines()}
