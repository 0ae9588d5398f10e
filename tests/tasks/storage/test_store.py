import errno
import fcntl
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headstream.tasks.errors import UserError, WorkError
from headstream.tasks.storage import store as store_module
from headstream.tasks.storage.artifact import MANIFEST, Artifact, Spec, json_sha256
from headstream.tasks.storage.sealing import RESUME
from headstream.tasks.storage.store import Store

MEGABYTE = 1 << 20
REPOSITORY = Path(store_module.__file__).resolve().parents[2]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=8,
)
json_objects = st.dictionaries(st.text(), json_values, max_size=4)
words = st.text("abzAZ09_.=+-", min_size=1, max_size=6).filter(lambda word: word[0] not in ".=+-")
# A name of n parts never is a folder of another one, because its first part counts them.
file_names = st.lists(words, max_size=2).map(lambda parts: "/".join([f"depth{len(parts)}", *parts]))
file_sets = st.dictionaries(file_names, st.binary(max_size=999), max_size=4)


def spec(stage: str = "corpus", **parts: object) -> Spec:
    defaults = {"code_version": "v1", "config": {}, "inputs": {}, "numerics": {}}
    return Spec(stage=stage, **{**defaults, **parts})


def writes(**files: bytes) -> Callable[[Path], None]:
    """A writer of the given files, x for x.bin."""

    def write(folder: Path) -> None:
        for name, content in files.items():
            (folder / f"{name}.bin").write_bytes(content)

    return write


def refuse(folder: Path) -> None:
    pytest.fail(f"asked to write {folder}, which the store should have found")


def forget_what_was_verified() -> None:
    store_module._verified.cache_clear()


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts one of this file's functions in a process of its own."""
    started = []

    def start_process(function: Callable[..., None], *arguments: object) -> subprocess.Popen[str]:
        call = f"import {__name__} as t; t.{function.__name__}(*{arguments!r})"
        search_path = os.pathsep.join([str(Path(__file__).parent), str(REPOSITORY)])
        process = subprocess.Popen(
            [sys.executable, "-c", call],
            env={**os.environ, "PYTHONPATH": search_path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start_process
    for process in started:
        process.kill()
        process.communicate()


class TestSpec:
    @given(json_objects, json_objects, st.randoms())
    def test_key_ignores_the_order_of_dictionaries(self, config, numerics, chance):
        items = list(config.items())
        chance.shuffle(items)
        shuffled = spec(config=dict(items), numerics=dict(reversed(numerics.items())))
        assert spec(config=config, numerics=numerics).key == shuffled.key

    @given(json_objects, json_objects)
    def test_key_tells_configs_and_numerics_apart(self, one, other):
        if one != other:
            assert spec(config=one).key != spec(config=other).key
            assert spec(numerics=one).key != spec(numerics=other).key
            assert spec(config=one, numerics=other).key != spec(config=other, numerics=one).key

    def test_key_depends_on_every_part(self, store):
        one, other = (store.build(spec(config={"n": n}), writes(x=str(n).encode())) for n in (1, 2))
        specs = [
            spec(),
            spec(stage="training"),
            spec(code_version="v2"),
            spec(config={"n": 1}),
            spec(config={"n": 1.0}),
            spec(config={"n": True}),
            spec(config={"n": "1"}),
            spec(numerics={"n": 1}),
            spec(inputs={"corpus": one}),
            spec(inputs={"corpus": other}),
            spec(inputs={"tokenizer": one}),
        ]
        assert len({each.key for each in specs}) == len(specs)
        assert {len(each.key) for each in specs} == {32}

    @pytest.mark.parametrize("value", [float("nan"), Path("here"), {1, 2}])
    def test_what_is_not_json_is_refused(self, value):
        with pytest.raises(ValueError, match="must be JSON with finite numbers"):
            spec(config={"value": value}).key  # noqa: B018


class TestBuildAndFind:
    @given(file_sets, json_objects, json_objects)
    def test_round_trip(self, files, config, facts):
        def write(folder: Path) -> dict:
            for name, content in files.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(content)
            return facts

        with TemporaryDirectory() as root:
            store = Store(Path(root))
            built = store.build(spec(config=config), write)
            found = store.find(spec(config=config))
            assert found == built == store.open("corpus", built.manifest.key)
            assert {name: (found.folder / name).read_bytes() for name in found.manifest.files} == files
            assert found.manifest.config == config
            assert found.manifest.facts == facts
            assert names_in(found.folder) == sorted({MANIFEST, *(name.split("/")[0] for name in files)})

    def test_what_is_there_is_not_written_again(self, store):
        assert store.find(spec()) is None
        store.build(spec(), writes(x=b"x"))
        assert store.build(spec(), refuse) == store.find(spec())

    def test_manifest_says_what_decided_it(self, store):
        corpus = store.build(spec(), writes(tokens=b"123"))
        model = store.build(
            spec("training", inputs={"corpus": corpus}, numerics={"threads": 1}),
            lambda folder: {"losses": {2: 0.5, 10: 0.25}},
        )
        assert model.manifest.facts == {"losses": {"2": 0.5, "10": 0.25}}
        assert model.manifest.inputs["corpus"].key == corpus.manifest.key
        assert model.manifest.inputs["corpus"].digest == corpus.digest
        assert model.manifest.numerics == {"threads": 1}
        assert corpus.manifest.files["tokens.bin"].bytes == 3
        assert store.find(spec("training", inputs={"corpus": corpus}, numerics={"threads": 1})) == model

    def test_artifacts_are_listed_by_stage_and_key(self, store):
        assert list(store.artifacts()) == []
        built = [
            store.build(spec(stage, config={"n": n}), writes(x=b"x"))
            for stage in ("training", "corpus")
            for n in range(3)
        ]
        listed = list(store.artifacts())
        assert listed == sorted(built, key=lambda artifact: (artifact.manifest.stage, artifact.manifest.key))
        assert list(store.artifacts("corpus")) == listed[:3]

    @pytest.mark.parametrize("name", ["", "..", "a/b", "Corpus", ".staging"])
    def test_stage_and_key_are_plain_names(self, store, name):
        with pytest.raises(UserError, match="must consist of a-z"):
            store.open(name, "0")
        with pytest.raises(UserError, match="must consist of a-z"):
            store.open("corpus", name)

    def test_removed_artifact_is_gone(self, store):
        artifact = store.build(spec(), writes(x=b"x"))
        store.remove(artifact.folder)
        assert store.find(spec()) is None
        assert store.sweep() == []


class TestDigest:
    def test_ignores_incidental_files_only(self, tmp_path):
        def digest(root: str, **files: bytes) -> str:
            return Store(tmp_path / root).build(spec(), writes(**files), incidental={"clock.bin"}).digest

        first = digest("a", loss=b"1", clock=b"12:00")
        assert digest("b", loss=b"1", clock=b"12:01") == first
        assert digest("c", loss=b"2", clock=b"12:00") != first

    def test_is_the_same_however_the_files_came_about(self, store):
        made = [store.build(spec(config={"n": n}, code_version=f"v{n}"), writes(x=b"x")) for n in (1, 2)]
        assert made[0].folder != made[1].folder
        assert made[0].digest == made[1].digest
        assert spec("tokens", inputs={"corpus": made[0]}).key == spec("tokens", inputs={"corpus": made[1]}).key

    def test_depends_on_the_names_of_files(self, store):
        one, other = store.build(spec("a"), writes(x=b"x")), store.build(spec("b"), writes(y=b"x"))
        assert one.digest != other.digest

    def test_incidental_file_that_need_not_be_written(self, store):
        assert set(store.build(spec(), writes(x=b"x"), incidental={"clock.bin"}).manifest.files) == {"x.bin"}


class TestCorruption:
    @given(st.sampled_from(["x.bin", "clock.bin", MANIFEST]), st.integers(0, 9999), st.integers(0, 7))
    def test_flipped_bit(self, name, position, bit):
        def write(folder: Path) -> dict:
            writes(x=b"0123456789", clock=b"12:00")(folder)
            return {"loss": 1e-05, "name": "café"}

        with TemporaryDirectory() as root:
            store = Store(Path(root))
            artifact = store.build(spec(), write, incidental=["clock.bin"])
            content = bytearray((artifact.folder / name).read_bytes())
            content[position % len(content)] ^= 1 << bit
            (artifact.folder / name).write_bytes(content)
            forget_what_was_verified()

            found = store.find(spec())
            # 1e-05 and 1E-05, or \u00e9 and \u00E9, are the same JSON.
            assert found is None or (name == MANIFEST and found == artifact)
            assert len(names_in(store.root / ".quarantine")) == (found is None)
            folder = store.build(spec(), write, incidental=["clock.bin"]).folder
            assert (folder / "x.bin").read_bytes() == b"0123456789"
            assert store.find(spec()) is not None

    @pytest.mark.parametrize("name", ["x.bin", MANIFEST])
    @pytest.mark.parametrize("damage", ["truncated", "extended", "emptied", "deleted", "replaced", "a folder"])
    def test_damaged_file(self, store, caplog, name, damage):
        path = store.build(spec(), writes(x=b"0123456789")).folder / name
        content = path.read_bytes()
        path.unlink()
        if damage == "a folder":
            path.mkdir()
        elif damage != "deleted":
            damaged = {"truncated": content[:-5], "extended": content * 2, "emptied": b"", "replaced": b"[1, 2]"}
            path.write_bytes(damaged[damage])
        forget_what_was_verified()

        assert store.find(spec()) is None
        assert "is corrupt and will be built again" in caplog.text
        assert names_in(store.root / ".quarantine")[0].startswith(f"corpus-{spec().key}-")
        store.build(spec(), writes(x=b"0123456789"))
        assert (store.find(spec()).folder / "x.bin").read_bytes() == b"0123456789"

    def test_a_damaged_file_that_nobody_asked_about(self, store):
        artifact = store.build(spec(), writes(x=b"0123456789", y=b"abc"))
        (artifact.folder / "x.bin").write_bytes(b"0123456780")
        assert store.verified("corpus", spec().key, among=frozenset({"y.bin", "of another stage"})) == artifact
        assert store.verified("corpus", spec().key, among=frozenset({"x.bin"})) is None

    def test_changed_fact(self, store):
        """Facts are in no other hash than the manifest's own checksum."""
        path = store.build(spec(), lambda folder: {"loss_nats": 2.25}).folder / MANIFEST
        path.write_text(path.read_text().replace("2.25", "2.75"))
        assert store.find(spec()) is None

    def test_listing_quarantines_unreadable_manifests(self, store):
        good, bad = (store.build(spec(config={"n": n}), writes(x=b"x")) for n in (1, 2))
        (bad.folder / MANIFEST).write_text("{}")
        assert list(store.artifacts()) == [good]
        assert len(names_in(store.root / ".quarantine")) == 1

    def test_artifact_under_another_name(self, store):
        artifact = store.build(spec(), writes(x=b"x"))
        artifact.folder.rename(artifact.folder.with_name("0123"))
        assert store.open("corpus", "0123") is None

    def test_a_file_name_can_not_lead_out_of_the_artifact(self, store):
        artifact = store.build(spec(), writes(x=b"x"))
        fields = artifact.manifest.model_dump()
        fields["files"]["../x.bin"] = fields["files"].pop("x.bin")
        sealed = {**fields, "checksum": json_sha256(fields)}
        (artifact.folder / MANIFEST).write_text(json.dumps(sealed))
        assert list(store.artifacts()) == []

    def test_too_many_open_files_is_not_corruption(self, store, monkeypatch):
        def fail(path: Path) -> str:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))

        store.build(spec(), writes(x=b"x"))
        forget_what_was_verified()
        with monkeypatch.context() as patch:
            patch.setattr(store_module, "file_sha256", fail)
            with pytest.raises(OSError, match="Too many open files"):
                store.find(spec())
        assert store.find(spec()) is not None


class TestRefusedContents:
    @pytest.mark.parametrize("name", ["a b", ".hidden", "-rf", "sub/.hidden", "sub/é", MANIFEST])
    def test_names(self, store, name):
        def write(folder: Path) -> None:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(b"")

        with pytest.raises(WorkError, match="a file in an artifact must consist of"):
            store.build(spec(), write)

    @pytest.mark.parametrize("target", [".", "/etc/passwd", "nowhere"])
    def test_symbolic_links(self, store, target):
        with pytest.raises(WorkError, match="is not a plain file or folder"):
            store.build(spec(), lambda folder: (folder / "link").symlink_to(target))

    def test_pipes(self, store):
        with pytest.raises(WorkError, match="is not a plain file or folder"):
            store.build(spec(), lambda folder: os.mkfifo(folder / "pipe"))


class TestInterruptedWriters:
    def test_failed_writer_leaves_nothing(self, store):
        def write(folder: Path) -> None:
            (folder / "x.bin").write_bytes(b"half")
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.build(spec(), write)
        assert [name for name in names_in(store.root / ".staging") if not name.endswith(".lock")] == []
        assert store.build(spec(), writes(y=b"y")).manifest.files.keys() == {"y.bin"}

    def test_failed_resumable_writer_goes_on(self, store):
        def write(folder: Path) -> None:
            checkpoint = folder / RESUME / "step"
            if not checkpoint.exists():
                checkpoint.write_text("7")
                (folder / "x.bin").write_bytes(b"x")
                raise RuntimeError("stopped at step 7")
            assert (folder / "x.bin").read_bytes() == b"x"

        with pytest.raises(RuntimeError, match="step 7"):
            store.build(spec(), write, resumable=True)
        artifact = store.build(spec(), write, resumable=True)
        assert names_in(artifact.folder) == [MANIFEST, "x.bin"]

    def test_hidden_files_of_a_killed_library_are_not_in_the_way(self, store):
        def write(folder: Path) -> None:
            (folder / "x.bin").write_bytes(b"x")
            if not (folder / ".tmp7Xq").exists():
                (folder / ".tmp7Xq").write_bytes(b"half")
                raise RuntimeError("stopped")

        for _ in range(2):
            with pytest.raises(RuntimeError):
                store.build(spec(), write, resumable=True)
        artifact = store.build(spec(), writes(x=b"x"), resumable=True)
        assert names_in(artifact.folder) == [MANIFEST, "x.bin"]

    @pytest.mark.parametrize("resumable", [True, False])
    def test_work_that_others_remove_is_an_error_of_the_system(self, store, resumable):
        """Such errors are tried again."""

        def write(folder: Path) -> None:
            shutil.rmtree(store.root / ".staging")
            raise RuntimeError("I/O error")

        with pytest.raises(FileNotFoundError, match="removed while it was being written"):
            store.build(spec(), write, resumable=resumable)
        assert store.build(spec(), writes(x=b"x"), resumable=resumable) == store.find(spec())

    def test_killed_resumable_writer_goes_on(self, store, start):
        process = start(checkpoint_and_hang, str(store.root))
        assert process.stdout.readline() == "saved a checkpoint\n"
        assert store.sweep() == [], "the writer is alive"
        process.kill()
        process.wait()
        assert store.sweep() == [], "resumable work is kept"

        def write(folder: Path) -> None:
            assert (folder / RESUME / "step").read_text() == "7"

        assert names_in(store.build(spec(), write, resumable=True).folder) == [MANIFEST]
        assert store.sweep() == []
        assert names_in(store.root / ".staging") == []

    def test_killed_at_any_moment(self, store, start):
        """Kills 32 writers, each at another call; what is visible is whole, and what isn't there can be built."""
        process = start(kill_writers, str(store.root), 32)
        output, _ = process.communicate()
        assert process.returncode == 0
        committed, interrupted = map(int, output.split())
        assert committed > 0
        assert interrupted > 0
        assert not (store.root / ".quarantine").exists()

    def test_racing_writers_do_the_work_once(self, store, start, tmp_path):
        log = tmp_path / "log"
        racers = [start(race, str(store.root), str(log)) for _ in range(3)]
        assert [racer.stdout.readline() for racer in racers] == ["ready\n"] * 3
        for racer in racers:
            racer.stdin.write("go\n")
            racer.stdin.flush()
        digests = {racer.communicate()[0] for racer in racers}
        assert digests == {f"{store.find(spec()).digest}\n"}
        assert log.read_text() == "written\n"

    def test_racing_threads_do_the_work_once(self, store):
        written = []
        with ThreadPoolExecutor(3) as threads:
            built = list(threads.map(lambda _: store.build(spec(), written.append), range(3)))
        assert built == [store.find(spec())] * 3
        assert len(written) == 1

    @pytest.mark.parametrize("first_is_valid", [True, False])
    def test_racing_writers_without_locks(self, store, monkeypatch, first_is_valid):
        """On a file system whose locks don't work, what was committed first stays, if it is valid."""

        def commit_another_one_first(folder: Path) -> None:
            other = store.build(spec(), writes(x=b"first"))
            if not first_is_valid:
                (other.folder / "x.bin").unlink()
            folder.mkdir(exist_ok=True)
            (folder / "x.bin").write_bytes(b"second")

        monkeypatch.setattr(Store, "_locked", lambda store, staging, target: nullcontext())
        (store.root / ".staging").mkdir(parents=True)
        artifact = store.build(spec(), commit_another_one_first)
        assert (artifact.folder / "x.bin").read_bytes() == (b"first" if first_is_valid else b"second")
        assert store.find(spec()) == artifact


class TestSweep:
    def test_removes_what_nobody_writes(self, store):
        abandoned, resumable = (store.root / ".staging" / name for name in ("abandoned", "resumable"))
        abandoned.mkdir(parents=True)
        (abandoned / "x.bin").write_bytes(b"x")
        (resumable / RESUME).mkdir(parents=True)
        (store.root / ".staging" / "stale.lock").touch()

        assert store.sweep() == [abandoned]
        assert names_in(store.root / ".staging") == ["resumable"]

    def test_interrupted_work_is_as_old_as_its_last_change(self, store):
        folder = store.root / ".staging" / "resumable"
        (folder / RESUME).mkdir(parents=True)
        (folder / RESUME / "state").touch()
        (folder.parent / "not_resumable").mkdir()
        ten_days_ago = time.time() - 10 * 86400
        for path in (folder, folder / RESUME):
            os.utime(path, (ten_days_ago, ten_days_ago))
        assert store.interrupted(days=9) == []
        os.utime(folder / RESUME / "state", (ten_days_ago, ten_days_ago))
        assert store.interrupted(days=9) == [folder]
        assert store.interrupted(days=11) == []
        store.remove(folder)
        assert names_in(folder.parent) == ["not_resumable"]

    def test_leaves_running_builds_alone(self, store):
        def write(folder: Path) -> None:
            assert store.sweep() == []
            (folder / "x.bin").write_bytes(b"x")

        assert store.build(spec(), write) == store.find(spec())
        assert store.sweep() == []

    def test_empty_store(self, store):
        assert store.sweep() == []


class TestUse:
    def test_nothing_is_removed_while_any_run_goes_on(self, store):
        refused = pytest.raises(WorkError, match="while a run is in progress")
        with store.shared_lock(), store.shared_lock(), refused, store.exclusive_lock():
            pytest.fail("a run goes on")
        with store.exclusive_lock():
            pass

    def test_a_run_waits_for_a_removal(self, store, monkeypatch):
        lock = fcntl.flock
        monkeypatch.setattr(fcntl, "flock", lambda file, how: lock(file, how | fcntl.LOCK_NB))  # fails if it would wait
        with store.exclusive_lock(), pytest.raises(BlockingIOError), store.shared_lock():
            pytest.fail("a removal goes on")
        with store.shared_lock():
            pass


class TestDisk:
    def test_full_disk(self, store, start):
        process = start(fill_the_disk, str(store.root))
        output, _ = process.communicate()
        assert process.returncode == 0
        assert f"{store.root} has no room for another artifact" in output
        assert output.count("\n") == 1

    def test_a_library_that_reports_a_full_disk_in_its_own_way(self, store):
        def write(folder: Path) -> None:
            raise RuntimeError("I/O error: No space left on device (os error 28)")

        with pytest.raises(WorkError, match="has no room for another artifact"):
            store.build(spec(), write)

    def test_read_only_store_can_be_read_and_not_written(self, store, monkeypatch):
        def fail(path: object, *arguments: object, **options: object) -> None:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

        artifact = store.build(spec(), writes(x=b"x"))
        for change in ("mkdir", "rename", "unlink"):
            monkeypatch.setattr(os, change, fail)
        assert store.find(spec()) == artifact
        for attempt in (lambda: store.build(spec("training"), refuse), lambda: store.remove(artifact.folder)):
            with pytest.raises(WorkError, match=r"can't be read and written: .*Read-only file system"):
                attempt()

    def test_what_a_writer_can_not_read_is_its_own_error(self, store, tmp_path):
        def write(folder: Path) -> None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(tmp_path / "corpus.txt"))

        with pytest.raises(PermissionError):
            store.build(spec(), write)


# What runs in processes of their own.


def checkpoint_and_hang(root: str) -> None:
    def write(folder: Path) -> None:
        (folder / RESUME / "step").write_text("7")
        print("saved a checkpoint", flush=True)
        signal.pause()

    Store(Path(root)).build(spec(), write, resumable=True)


def race(root: str, log: str) -> None:
    def write(folder: Path) -> None:
        with open(log, "a") as file:
            file.write("written\n")
        writes(x=bytes(4 * MEGABYTE))(folder)

    print("ready", flush=True)
    sys.stdin.readline()
    print(Store(Path(root)).build(spec(), write).digest)


def fill_the_disk(root: str) -> None:
    store = Store(Path(root))
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MEGABYTE, unlimited[1]))
    with pytest.raises(WorkError) as failure:
        store.build(spec(), writes(x=bytes(3 * MEGABYTE)))
    print(failure.value)
    assert list(store.artifacts()) == []
    assert store.sweep() == []
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    assert store.build(spec(), writes(x=bytes(3 * MEGABYTE))) == store.find(spec())


def kill_writers(root: str, rounds: int) -> None:
    """Prints how many artifacts the killed writers committed, and how many they left half-written."""
    store = Store(Path(root))
    calls = calls_of_a_build(store)
    committed = interrupted = 0
    for n in range(rounds):
        writer = os.fork()
        if writer == 0:
            build_without_end(store, n, calls=2 * calls * n // rounds)
        os.waitpid(writer, 0)

        visible = list(store.artifacts())
        for artifact in visible:
            check_whole(store, artifact)
        interrupted += len(store.sweep())
        check_whole(store, build_part(store, n, len(visible)))
        for artifact in store.artifacts():
            store.remove(artifact.folder)
        committed += len(visible)
    print(committed, interrupted)


def calls_of_a_build(store: Store) -> int:
    """How many calls and returns of functions a build takes."""
    calls = count()
    sys.setprofile(lambda frame, event, argument: next(calls))
    store.remove(build_part(store, 0, 0).folder)
    sys.setprofile(None)
    return next(calls)


def build_without_end(store: Store, n: int, calls: int) -> None:
    """Build one artifact after the other, until so many calls and returns of functions kill the process."""
    left = iter(range(calls))
    sys.setprofile(lambda frame, event, argument: next(left, None) is None and os.kill(os.getpid(), signal.SIGKILL))
    for part in count():
        build_part(store, n, part)


def build_part(store: Store, n: int, part: int) -> Artifact:
    content = bytes([n]) * MEGABYTE
    return store.build(spec(config={"n": n, "part": part}), writes(a=content, b=content + content))


def check_whole(store: Store, artifact: Artifact) -> None:
    assert store.open("corpus", artifact.manifest.key) == artifact
    assert set((artifact.folder / "b.bin").read_bytes()) == {artifact.manifest.config["n"]}
    assert (artifact.folder / "b.bin").stat().st_size == 2 * MEGABYTE


def test_numbers_that_numpy_gives_for_a_full_disk_are_put_in_words(store):
    def write(folder):
        raise OSError("21844 requested and 14336 written")

    with pytest.raises(WorkError, match=r"No space left on device \(21844 requested and 14336 written\)"):
        store.build(Spec("tokens", "v1", {}, {}, {}), write)
