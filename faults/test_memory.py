"""Too little memory for one model: it fails and says why, the others are finished, and a later run adds it."""

import resource
import time
from contextlib import suppress

import psutil
import pytest

from faults.home import Home, require_same

LIMIT_BYTES = 8 << 30  # of addresses, most of which a process never touches
KILLED = "killed by signal 9 (most often: the machine ran out of memory)"
REFUSED = "can't allocate memory"
GRID = "[grid]\nn_layers = [1, 2]"
# 65,536 sequences of 256 tokens have 18 GB of logits, and little else that is large.
VARIANTS = """[variants.small]
n_layers = 1

[variants.large]
n_layers = 1
n_ctx = 256
n_heads = 1
d_model = 2
batch_size = 65536"""


def require_told(home: Home, cell: str, reason: str, said: str) -> None:
    """Fails unless one model failed for this reason, said by last line, table and report, and the other is there."""
    assert said.startswith("headstream: 1 of 2 models failed")
    assert f"{cell}: " in said
    assert reason in said
    ((failed, failure),) = home.rows("select cell, failure from study_models where status = 'failed'")
    assert failed == cell
    assert reason in failure
    ((trained,),) = home.rows("select cell from study_models join models using (model_id)")
    assert trained != cell
    assert home.rows("select n_failed from studies") == [(1,)]
    report = (home.folder / "reports" / "generated" / "faulty" / "report.md").read_text()
    assert reason in report.replace("\\", "")


@pytest.mark.fault(
    "SIGKILL to each process that trains one of the models, as the kernel does when memory runs out",
    "it fails with the reason in the error, the table and the report; the other is there; a later run adds it",
)
def test_killed_for_memory(finished, reference, study):
    finished.forget("training", "behaviour")
    model = reference.artifacts("training")[0]
    (folder,) = finished.stagings([model])
    of_model = f"select cell from study_models where model_id = '{model.manifest.facts['model_id']}'"
    ((cell,),) = reference.rows(of_model)
    lock = str(folder / ".resume" / "lock")  # who trains holds it
    process = finished.start("run", str(study))
    killed = set()
    while process.poll() is None:
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.Error):
                if any(file.path == lock for file in child.open_files()):
                    child.kill()
                    killed.add(child.pid)
        time.sleep(0.02)
    _, err = process.communicate()
    assert process.returncode == 1
    assert len(killed) == 3  # it is tried again twice
    require_told(finished, cell, KILLED, err.splitlines()[-1])
    finished.run_well("run", str(study))
    assert finished.rows("select n_failed from studies") == [(0,)]
    require_same(finished, reference)


@pytest.mark.fault(
    "a model that asks for more memory than there is",
    "it fails with the reason in the error, the table and the report; the other is there; a smaller batch helps",
)
def test_too_large_a_model(home: Home, study, tmp_path):
    file = tmp_path / "faulty.toml"
    file.write_text(study.read_text().replace(GRID, VARIANTS))

    def limit() -> None:  # so that memory is refused before the machine has none left
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))

    done = home.run("run", str(file), preexec_fn=limit)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr, done.stderr
    ((large,),) = home.rows("select cell from study_models where cell like '%large%'")
    require_told(home, large, REFUSED, done.stderr.splitlines()[-1])
    file.write_text(file.read_text().replace("batch_size = 65536", "batch_size = 64"))
    home.run_well("run", str(file))
    assert home.rows("select status, count(*) from study_models group by all") == [("trained", 2)]
