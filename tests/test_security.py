"""Doors that stay shut: text run as code, pickles, shells, guessable names, other sites' pages, tokens in remotes."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from torch._inductor.runtime.cache_dir_utils import cache_dir

from headstream.flows.up_command import environment_for
from headstream.tasks import places
from headstream.tasks.machines.child_process import run_in_process
from headstream.tasks.storage import provenance

FOLDERS = ("flows", "tasks", "models", "benchmarks", "faults")
SOURCES = [path for folder in FOLDERS for path in sorted((places.ROOT / folder).rglob("*.py"))]
MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "pty", "telnetlib"}
CALLS = {
    "eval", "exec", "compile", "__import__", "torch.load", "torch.save", "torch.jit.load", "torch.hub.load",
    "pd.read_pickle", "pandas.read_pickle", "yaml.load", "yaml.unsafe_load", "os.system", "os.popen",
    "tempfile.mktemp", "mktemp", "subprocess.getoutput", "subprocess.getstatusoutput",
}  # fmt: skip
TENSORS_ALONE = "torch.load(path, map_location='cpu', weights_only=True, mmap=True)"  # the one way to read a .pt
ARGUMENTS = {"shell", "allow_pickle"}  # that must not be given, but as False


def forbidden(code: str) -> Iterator[str]:
    """What a module imports or calls and must not."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Import(names):
                yield from {alias.name.split(".")[0] for alias in names} & MODULES
            case ast.ImportFrom(module=str(module), names=names):
                yield from {module.split(".")[0]} & MODULES
                yield from {f"{module}.{alias.name}" for alias in names} & CALLS
            case ast.Call() if ast.unparse(node) == TENSORS_ALONE:
                continue
            case ast.Call(func, keywords=keywords):
                yield from {ast.unparse(func)} & CALLS
                for keyword in keywords:
                    if keyword.arg in ARGUMENTS and ast.unparse(keyword.value) != "False":
                        yield ast.unparse(keyword)


def test_no_module_runs_what_it_reads():
    found = {str(path.relative_to(places.ROOT)): list(forbidden(path.read_text())) for path in SOURCES}
    assert {name: calls for name, calls in found.items() if calls} == {}


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "import os, pickle as p",
        "from pickle import loads",
        "from torch import load\ntorch.load('x')",
        "def f():\n    return torch.load(path, weights_only=True)",
        "np.load('x', allow_pickle=True)",
        "eval('1')",
        "exec(code, {})",
        "yaml.load(text, Loader=yaml.SafeLoader)",
        "subprocess.run('ls', shell=True)",
        "subprocess.run('ls', shell=shell)",
        "os.system('ls')",
        "tempfile.mktemp()",
        "from tempfile import mktemp",
    ],
)
def test_such_code_would_be_found(code):
    assert list(forbidden(code))


def compiled_code(on_progress) -> str:
    return cache_dir()


@pytest.mark.process
def test_compiled_code_is_kept_where_others_cant_write(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADSTREAM_HOME", str(tmp_path))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    assert run_in_process(compiled_code) == str(tmp_path / "data" / "compiled")


WEB_PAGE = """
from prefect.server.api.server import create_app
from starlette.testclient import TestClient

client = TestClient(create_app(ignore_cache=True))
for origin in ("https://example.com", "http://localhost:4321", "http://127.0.0.1:4321"):
    asks = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    print(client.options("/api/deployments/filter", headers=asks).headers.get("access-control-allow-origin"))
print(client.post("/api/deployments/filter", content="{}", headers={"Content-Type": "text/plain"}).text)
"""


@pytest.mark.process
def test_a_web_page_of_another_site_can_not_start_runs(tmp_path):
    environment = environment_for("http://127.0.0.1:4321", 4321, None) | {"PREFECT_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", WEB_PAGE], env=environment, capture_output=True, text=True, check=True)
    other, *own, without_token = done.stdout.splitlines()
    assert other == "None"
    assert own == ["http://localhost:4321", "http://127.0.0.1:4321"]
    assert without_token == '{"detail":"Missing CSRF token."}'


def test_a_token_in_the_address_of_a_git_remote_stays_there(tmp_path, monkeypatch):
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True, capture_output=True)

    git("init")
    git("remote", "add", "origin", "https://x-access-token:tok-0badcafe@example.com/a.git")
    git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--allow-empty", "-m", "tok-0badcafe")
    monkeypatch.setattr(places, "ROOT", Path(tmp_path))
    provenance.git_commit.cache_clear()
    try:
        assert re.fullmatch("[0-9a-f]{12}", provenance.git_commit() or "")
    finally:
        provenance.git_commit.cache_clear()
