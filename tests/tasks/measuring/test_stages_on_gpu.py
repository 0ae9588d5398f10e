"""Every stage of the analysis finds on a GPU what it finds on the CPU, and leaves nothing on the wrong one."""

from math import isclose

import pyarrow.parquet as pq
import pytest
from little_analysis import SHORTER_CURVES, inputs_of
from stand_in_gpu import stand_in_gpu
from test_every_stage import trained

from headstream.tasks.measuring.measure import measure
from headstream.tasks.study.analyses import ANALYSES
from headstream.tasks.training.checkpoints import save_checkpoint, write_model_card


@pytest.mark.parametrize("kind", ["dynamic gates, top k", "like GPT-J, without BOS", "pruned"])
def test_every_stage_on_a_gpu(kind, tmp_path):
    model, tokens = trained(kind)
    write_model_card(tmp_path, model, 1)
    for step in (0, 1):
        save_checkpoint(tmp_path, model, step)

    def measured(stage, device):
        folder = tmp_path / f"{stage}-{device}"
        folder.mkdir()
        config = SHORTER_CURVES.model_copy(update={"device": device})
        measure(stage, config, "m", inputs_of(stage, tmp_path, tokens.folder), folder, lambda fraction: None)
        return {path.stem: pq.read_table(path).to_pydict() for path in folder.glob("*.parquet")}

    for stage in ANALYSES:
        wanted = measured(stage, "cpu")
        with stand_in_gpu() as device:
            found = measured(stage, device)
        assert found.keys() == wanted.keys()
        for table, columns in wanted.items():
            for name, values in columns.items():
                if "seconds" not in name:
                    assert alike(found[table][name], values), f"{table}.{name} of {stage}"


def alike(found, wanted):
    """Whether numbers differ by no more than rounding, and all else not at all."""
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(alike, found, wanted))
    if isinstance(wanted, float) and isinstance(found, float):
        return isclose(found, wanted, rel_tol=1e-3, abs_tol=2e-5)
    return found == wanted
