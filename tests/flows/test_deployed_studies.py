"""What a study that comes through Prefect's API may ask for, and how its deployment runs."""

import asyncio
from datetime import UTC, date, datetime, time, timedelta
from importlib import import_module
from zoneinfo import ZoneInfo

import pytest
import yaml
from jsonschema import ValidationError, validate
from prefect import Flow
from prefect.server.schemas.schedules import CronSchedule

from headstream.flows.study import run_study
from headstream.flows.up_command import environment_for
from headstream.tasks import places
from headstream.tasks.errors import UserError
from headstream.tasks.study.schema import Study, complete_study, parse_study
from headstream.tasks.study.sources import shipped_studies
from headstream.tasks.text.allowed_files import require_allowed


def with_paths(*paths: str):
    return parse_study("s", {"name": "s", "corpus": {"paths": paths}})


def deployed(study) -> Study:
    """A study as the flow takes it from Prefect's API."""
    study = complete_study(study)
    require_allowed(study.corpus)
    return study


def test_a_shipped_study_is_known_by_its_name():
    assert deployed("smoke").name == "smoke"


def test_a_whole_study_comes_as_prefect_has_it():
    content = {"name": "s", "grid": {"seed": [0, 1]}}
    assert deployed(content) == parse_study("s", content)


@pytest.mark.parametrize("name", ["quikc", "../quick", "flows/studies/quick.toml", "/etc/passwd"])
def test_no_other_name_is(name):
    with pytest.raises(UserError, match="there is no shipped study"):
        deployed(name)


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "~/secrets/*.txt", "corpora/../../x", "{root}/../x.txt", ".", "**/*.txt", "{root}x/a.txt"]
)
def test_a_deployed_study_reads_allowed_folders_only(path, monkeypatch, tmp_path):
    monkeypatch.setenv("HEADSTREAM_CORPUS_ROOTS", str(tmp_path / "corpora"))
    study = with_paths(path.format(root=tmp_path / "corpora"))
    with pytest.raises(UserError, match="HEADSTREAM_CORPUS_ROOTS"):
        deployed(study)
    assert complete_study(study) is study


@pytest.mark.parametrize(
    "path", ["", "/*", "/*.txt", "/**/*.txt", "/deep/[!x]*", "/folder", "/folder/*.txt", "/f*/*.txt", "/link.txt"]
)
def test_a_link_out_of_an_allowed_folder_is_refused(path, monkeypatch, tmp_path):
    corpora, secrets = tmp_path / "corpora", tmp_path / "secrets"
    monkeypatch.setenv("HEADSTREAM_CORPUS_ROOTS", str(corpora))
    (corpora / "deep").mkdir(parents=True)
    (corpora / "deep" / "text.txt").write_text("text")
    secrets.mkdir()
    (secrets / "secret.txt").write_text("secret")
    (corpora / "folder").symlink_to(secrets)
    for link in (corpora / "link.txt", corpora / "deep" / "link.txt"):
        link.symlink_to(secrets / "secret.txt")
    with pytest.raises(UserError, match="HEADSTREAM_CORPUS_ROOTS"):
        deployed(with_paths(f"{corpora}{path}"))


def test_allowed_folders_are_read(monkeypatch, tmp_path):
    for name in ("a/deep/one.txt", "b/text.jsonl.gz", "home/corpora/x.txt"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("text")
    (tmp_path / "a" / "link.txt").symlink_to(tmp_path / "b" / "text.jsonl.gz")
    (tmp_path / "c").symlink_to(tmp_path / "b")
    monkeypatch.setenv("HEADSTREAM_CORPUS_ROOTS", f"{tmp_path / 'a'}:{tmp_path / 'c'}:")
    study = with_paths(f"{tmp_path}/a/**/*.txt", f"{tmp_path}/b/text.jsonl.gz")
    assert deployed(study) is study
    monkeypatch.delenv("HEADSTREAM_CORPUS_ROOTS")
    monkeypatch.setenv("HEADSTREAM_HOME", str(tmp_path / "home"))
    assert deployed(with_paths(str(tmp_path / "home" / "corpora" / "x.txt")))


@pytest.mark.parametrize(
    ("study", "message"),
    [
        ({"name": "s", "grid": {"seed": [1] * 40_000}}, "at most 65,536 bytes as JSON, got 120,"),
        ({"name": "s", "max_models": 10**9}, "max_models: must be less than or equal to 10000, got 1000000000"),
        ({"name": "s", "corpus": {"paths": ["a\0b"]}}, "paths"),
        ({"name": "s", "corpus": {"paths": ["~nobody/x"]}}, "HEADSTREAM_CORPUS_ROOTS"),
        ({"name": "../s"}, "name: must be 1 to 64 of a-z"),
        ({"name": "s", "question": "\ud800"}, "question: must be text in Unicode"),
        ({"name": "s", "variants": {"a\n\x1b": {}}}, "variants"),
        (["s"], "must be a table"),
        (None, "must be a table"),
    ],
)
def test_what_prefect_hands_over_is_checked_here(study, message):
    with pytest.raises(UserError, match=message) as refusal:
        deployed(study)
    assert str(refusal.value).isprintable()  # so it is one line
    assert len(str(refusal.value)) < 1000


@pytest.mark.usefixtures("prefect_server")
@pytest.mark.parametrize("study", ["../quick", {"nam": "s"}, 7, {"name": "s", "grid": {"n_layers": ["\n"]}}])
def test_prefects_state_says_in_one_line_what_is_wrong(study):
    state = run_study(study, return_state=True)
    assert state.is_failed()
    assert "UserError: " in state.message
    assert state.message.isprintable()


@pytest.mark.usefixtures("prefect_server")
def test_the_flow_of_a_deployment_refuses_other_files(monkeypatch):
    monkeypatch.setenv("PREFECT__RUNTIME__DEPLOYMENT__ID", "nightly")
    state = run_study({"name": "s", "corpus": {"paths": ["/etc/passwd"]}}, return_state=True)
    assert state.is_failed()
    assert "HEADSTREAM_CORPUS_ROOTS" in state.message


def test_a_study_is_chosen_from_those_that_ship_or_named_or_whole():
    """Prefect's pages make a button of each choice, called by its title, and of an enum a list to choose from."""
    schema = run_study.parameters.model_dump()
    ships, named, whole = schema["properties"]["study"]["anyOf"]
    assert ships["enum"] == shipped_studies()
    assert "enum" not in named
    assert [choice["title"] for choice in (ships, named)] == ["a study that ships", "your own study"]
    assert whole == {"$ref": "#/definitions/Study"}
    for study in ("quick", "my_study", {"name": "s", "grid": {"seed": [0, 1]}}):
        validate({"study": study}, schema)  # as Prefect's server does
    for study in ("../quick", 7, None):
        with pytest.raises(ValidationError):
            validate({"study": study}, schema)


def test_the_servers_password_is_given_to_its_clients(monkeypatch):
    monkeypatch.delenv("PREFECT_API_AUTH_STRING", raising=False)
    monkeypatch.delenv("PREFECT_SERVER_API_AUTH_STRING", raising=False)
    assert "PREFECT_API_AUTH_STRING" not in environment_for("http://127.0.0.1:1", 1, None)
    monkeypatch.setenv("PREFECT_SERVER_API_AUTH_STRING", "name:password")
    assert environment_for("http://127.0.0.1:1", 1, None)["PREFECT_API_AUTH_STRING"] == "name:password"


def test_services_have_the_folders_that_headstream_up_has(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADSTREAM_HOME", "results")
    assert environment_for("http://127.0.0.1:1", 1, None)["HEADSTREAM_CORPUS_ROOTS"] == str(
        tmp_path / "results/corpora"
    )
    monkeypatch.setenv("HEADSTREAM_CORPUS_ROOTS", "a:/b")
    environment = environment_for("http://127.0.0.1:1", 1, None)
    assert environment["HEADSTREAM_HOME"] == str(tmp_path / "results")
    assert environment["HEADSTREAM_CORPUS_ROOTS"] == f"{tmp_path}/a:/b"


DEPLOYMENTS = yaml.safe_load((places.ROOT / "prefect.yaml").read_text())["deployments"]


def test_every_deployment_has_its_flow():
    assert {d["name"] for d in DEPLOYMENTS} == {"nightly", "on-study", "weekly"}
    for deployment in DEPLOYMENTS:
        path, _, name = deployment["entrypoint"].partition(":")
        assert isinstance(getattr(import_module(path.removesuffix(".py").replace("/", ".")), name), Flow)
        variables = {"command": "python -m prefect.engine", "stream_output": False}
        assert deployment["work_pool"]["job_variables"] == variables


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
@pytest.mark.parametrize("day", [date(2027, 3, 13), date(2027, 3, 27), date(2027, 10, 30), date(2027, 11, 6)])
@pytest.mark.parametrize("cron", ["30 1 * * *", "30 2 * * *"])
def test_a_schedule_has_one_run_a_day_when_clocks_change(cron, zone, day):
    """Whenever Prefect's server looks ahead, as it does each minute."""
    schedule, noon = CronSchedule(cron=cron, timezone=zone), datetime.combine(day, time(12), ZoneInfo(zone))
    looks = [noon + timedelta(minutes=15 * n) for n in range(96)]
    dates = {at.astimezone(UTC) for look in looks for at in asyncio.run(schedule.get_dates(n=3, start=look))}
    days = sorted(at.astimezone(ZoneInfo(zone)).date() for at in dates)
    assert days == [day + timedelta(days=n) for n in range(1, len(days) + 1)]
