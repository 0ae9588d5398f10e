import errno
import multiprocessing
import os
import signal
import subprocess
import sys
from functools import partial
from multiprocessing import forkserver
from pathlib import Path

import psutil
import pytest

from headstream.tasks.errors import UserError, WorkError
from headstream.tasks.machines.child_process import ProcessDied, run_in_process, run_side_by_side


def double(x, on_progress):
    for i in range(3):
        on_progress(i)
    return 2 * x


def mistaken(on_progress):
    raise UserError("n must be even, got 3. Choose 2.")


def failing(on_progress):
    raise WorkError("no luck")


def crashing(on_progress):
    raise ZeroDivisionError("by zero")


def out_of_memory(on_progress):
    raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 400 bytes.")


def out_of_disk(words, on_progress):
    raise OSError(words)


def unreadable(on_progress):
    Path("/nowhere/at/all").read_text()


def killed(on_progress):
    os.kill(os.getpid(), signal.SIGKILL)


def endless(on_progress):
    on_progress(os.getpid())
    signal.pause()


def environment(on_progress):
    return dict(os.environ)


def test_result_and_progress_come_back():
    seen = []
    assert run_in_process(double, 21, on_progress=seen.append) == 42
    assert seen == [0, 1, 2]


def test_a_child_has_the_environment_of_its_parent_and_what_is_added(monkeypatch):
    monkeypatch.setenv("OWN", "1")
    seen = run_in_process(environment, environment={"ADDED": "2"})
    assert (seen["OWN"], seen["ADDED"]) == ("1", "2")
    assert "ADDED" not in os.environ


def test_errors_keep_their_kind():
    with pytest.raises(UserError, match="n must be even"):
        run_in_process(mistaken)
    with pytest.raises(WorkError, match="no luck"):
        run_in_process(failing)
    with pytest.raises(WorkError, match="crashing failed: ZeroDivisionError: by zero"):
        run_in_process(crashing)


def test_memory_that_a_library_could_not_get_is_said_in_one_line(capfd):
    with pytest.raises(WorkError, match=r"out_of_memory ran out of memory: .* 400 bytes\. Use a smaller model"):
        run_in_process(out_of_memory)
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("words", ["I/O error: No space left on device (os error 28)", "218 requested and 143 written"])
def test_a_full_disk_has_one_error_whichever_library_met_it(words):
    with pytest.raises(OSError, match="No space left on device") as full:
        run_in_process(out_of_disk, words)
    assert full.value.errno == errno.ENOSPC


def test_errors_of_the_system_keep_their_number():
    with pytest.raises(FileNotFoundError, match="unreadable failed: No such file or directory") as missing:
        run_in_process(unreadable)
    assert missing.value.filename == "/nowhere/at/all"


def test_a_killed_child_is_named_with_its_signal():
    with pytest.raises(ProcessDied, match=r"killed by signal 9 \(most often: the machine ran out of memory\)"):
        run_in_process(killed)


class Enough(Exception):
    """An error of the parent's own."""


def test_an_error_of_the_parent_kills_the_child():
    def stop(pid):
        children.append(psutil.Process(pid))
        raise Enough

    children: list[psutil.Process] = []
    with pytest.raises(Enough):
        run_in_process(endless, on_progress=stop)
    assert not psutil.wait_procs(children, timeout=20)[1]


def test_works_side_by_side_each_tell_how_far_they_are():
    heard = []
    works = [partial(double, number) for number in (10, 20, 30)]
    assert run_side_by_side(works, lambda place, progress: heard.append((place, progress))) == [20, 40, 60]
    assert sorted(heard) == [(place, progress) for place in range(3) for progress in range(3)]


@pytest.mark.parametrize(("ends", "error"), [(killed, ProcessDied), (unreadable, OSError)])
def test_when_one_of_them_fails_the_others_end(ends, error):
    with pytest.raises(error):
        run_side_by_side([partial(endless), partial(ends), partial(endless)], lambda *_: None)
    assert not multiprocessing.active_children()


# Prints the process that is to end with it.
PARENT = """
from test_child_process import endless
from headstream.tasks.machines import child_process
from headstream.tasks.machines.child_process import run_in_process
if __name__ == "__main__":
    child_process._context.set_forkserver_preload([])  # what a server of its own would import takes seconds
    run_in_process(endless, on_progress=lambda pid: print(pid, flush=True))
"""


@pytest.mark.process
def test_a_child_ends_with_a_killed_parent(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    path = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[3])])
    environment = {**os.environ, "PYTHONPATH": path}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    _, alive = psutil.wait_procs([child], timeout=20)
    assert not alive


INTERRUPTED = """
import os, signal, time
from test_child_process import double
from headstream.tasks.machines.child_process import run_in_process, start_fork_server
if __name__ == "__main__":
    signal.signal(signal.SIGINT, lambda *_: None)
    start_fork_server()
    for _ in range(4):  # while it imports torch
        time.sleep(0.5)
        os.killpg(0, signal.SIGINT)
    print(run_in_process(double, 21))
"""


@pytest.mark.process
def test_ctrl_c_does_not_reach_the_server_of_children(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(INTERRUPTED)
    path = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[3])])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, script], env=environment, start_new_session=True, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("42\n", "")


def test_a_server_of_children_that_ends_is_worth_another_try(monkeypatch):
    """As when the kernel kills it while it imports."""
    monkeypatch.setattr(forkserver, "connect_to_new_process", lambda fds: killed_server())
    with pytest.raises(ProcessDied, match=r"double: the server that starts child processes ended"):
        run_in_process(double, 2)
    monkeypatch.undo()
    assert run_in_process(double, 2) == 4


def killed_server():
    raise EOFError("unexpected EOF")
