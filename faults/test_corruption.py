"""Damaged files: what meets one reports it and puts it aside, the rest can be queried, and a run makes it again."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from faults.home import Home, require_same


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def flip(path: Path) -> None:
    """Flip a bit in each block of DuckDB, or in the middle of a smaller file."""
    content = bytearray(path.read_bytes())
    for place in range(min(150_000, len(content) // 2), len(content), 1 << 18):
        content[place] ^= 1
    path.write_bytes(content)


def replace(path: Path) -> None:
    pq.write_table(pa.table({"another": ["schema"]}), path)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "truncated": truncate,
    "zeroed": zero,
    "bits flipped": flip,
    "another schema": replace,
}
TABLE, WEIGHTS, MANIFEST = "behaviour/heads.parquet", "training/checkpoints/*.safetensors", "importance/manifest.json"
CASES = [(TABLE, damage) for damage in DAMAGES] + [
    (file, damage) for file in (WEIGHTS, MANIFEST) for damage in ("truncated", "bits flipped")
]


def spoil(home: Home, file: str, damage: str) -> None:
    """Damage the last file of one artifact that matches a pattern."""
    stage, _, pattern = file.partition("/")
    path = sorted(home.artifacts(stage)[0].folder.glob(pattern))[-1]
    before = path.read_bytes()
    DAMAGES[damage](path)
    assert path.read_bytes() != before


def asked(home: Home) -> str:
    return home.run_well("sql", "select count(*) as n from heads", "--format", "csv")


@pytest.mark.fault("`{file}`: {damage}", "`sql` answers; the next run puts it aside and has the same rows and weights")
@pytest.mark.parametrize(("file", "damage"), CASES)
def test_a_run_makes_it_again(file, damage, finished, reference, study):
    spoil(finished, file, damage)
    assert asked(finished) == asked(reference)
    finished.run_well("run", str(study))
    assert len(finished.store.quarantined()) == 1
    require_same(finished, reference)


@pytest.mark.fault("`{file}`: {damage}", "`check` says so and fails; `index` builds a warehouse of the rest")
@pytest.mark.parametrize(("file", "damage"), [(TABLE, "bits flipped"), (WEIGHTS, "zeroed"), (MANIFEST, "truncated")])
def test_it_is_found_and_the_rest_goes_on(file, damage, finished, reference):
    spoil(finished, file, damage)
    checked = finished.run("check")
    assert checked.returncode == 1
    assert "was corrupt, and is in quarantine now" in checked.stdout
    assert "`headstream run faulty`" in checked.stdout
    assert "Traceback" not in checked.stderr
    finished.run_well("index")
    lost, table = file.split("/")[0], {TABLE: "evaluations", WEIGHTS: "models", MANIFEST: "ablations"}[file]
    count = f"select count(distinct model_id) from {table}"
    assert (finished.rows(count), reference.rows(count)) == ([(1,)], [(2,)]), lost


@pytest.mark.fault("the warehouse: {damage}", "`check` says so and fails; `index` builds it again, with the same rows")
@pytest.mark.parametrize("damage", ["truncated", "zeroed", "bits flipped"])
def test_the_warehouse_is_built_again(damage, finished, reference):
    DAMAGES[damage](finished.warehouse)
    assert "not: warehouse." in finished.run("check").stderr
    finished.run_well("index")
    require_same(finished, reference)
