"""The work of the stage `prompt-circuits` on one prompt set, counted before it is done."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headstream.models.flops import forward_flops
from headstream.models.prompts.graph_sizes import FRACTIONS, count_edges, count_writers
from headstream.tasks.study.analyses.prompt_circuits_config import PromptCircuitsConfig
from headstream.tasks.study.analyses.prompts_config import PromptsConfig
from headstream.tasks.study.stage import FLOPS_PER_SECOND, CountedWork, Size

# Of pairs as those that ship have them: some are of one length, and differ from the middle on.
_TOKENS, _CHANGED_TOKENS, _GROUPS = 17, 6, 10
_SECONDS_OF_A_CALL = 4e-4  # of one layer on few numbers, beside its arithmetic
_BYTES_OF_A_BATCH, _PAIRS_AT_ONCE, _POSITIONS_AT_ONCE = 200 << 20, 64, 2**11


def count_work(
    config: PromptCircuitsConfig, size: Size, threads: int, prompts: PromptsConfig | None = None
) -> CountedWork:
    """Count the work of one prompt set that a model can do: passes of some positions, and calls of layers.

    `prompts` is the set; of a file there are no more pairs than lines, of any other as many as are asked for.
    Patched runs start at the layer that is patched: half of a pass each. A circuit's readers read inputs of their own,
    which takes half as long again; gradients take as long as a pass, and what they are multiplied by as well.
    """
    a = size.architecture
    assert a is not None
    writers, edges = count_writers(a), count_edges(a)
    files = [Path(own.path) for own in prompts.sets if own.path] if prompts else []
    n = min([config.pairs, *map(_lines, files)])
    n_exact = min(config.exact_pairs, n)
    patched = edges if edges <= config.all_edges_up_to else min(edges, config.exact_edges + config.drawn_edges)
    sizes, n_null = len(FRACTIONS) - 1, min(config.null_pairs, n // 2)
    on_halves = 5 * sizes + 7  # circuits found, then judged by three orders and what is left without, and those between
    passes = n_exact * ((writers - 1) + patched / 2)
    passes += 3 * config.steps * n + 1.5 * (on_halves * n / 2 + config.random_circuits * sizes * n_null)
    whole_passes = 8 * n + 2 * n_null
    followed = min(config.checkpoints, size.n_checkpoints) if size.n_checkpoints > 1 else 0
    passes += followed * (3 * config.steps * n_exact + 1.5 * n)
    whole_passes += 2 * n * followed
    by_token = forward_flops(a, 0, _TOKENS) / _TOKENS  # logits are computed at one position
    flops = (passes * _CHANGED_TOKENS + whole_passes * _TOKENS) * by_token
    of_a_pair = writers * _TOKENS * a.d_model * 4
    at_once = max(1, min(_PAIRS_AT_ONCE, _BYTES_OF_A_BATCH // of_a_pair, n // _GROUPS + 1))
    batches = max(_GROUPS, n / at_once)
    runs = 4 * a.n_layers + patched + 3 * config.steps + on_halves + config.random_circuits * sizes
    runs += followed * (3 * config.steps + 2)
    of_one_thread = flops / FLOPS_PER_SECOND["cpu"] * 1.25 + batches * runs * a.n_layers * _SECONDS_OF_A_CALL
    of_a_thread = 4 * at_once * of_a_pair + 32 * _POSITIONS_AT_ONCE * (a.mlp_width + 6 * a.d_model)
    held = 1.2 * size.checkpoint_bytes + threads * of_a_thread + 28 * edges * n
    return CountedWork(0.7 + of_one_thread / threads, int(400e6 + held))


def _lines(path: Path) -> int:
    """The number of pairs that a file can hold: its lines, or a table's rows; a file that can't be read holds one."""
    try:
        path = path.expanduser()
        if path.suffix == ".parquet":
            return max(1, pq.read_metadata(path).num_rows)
        with path.open("rb") as lines:
            return max(1, sum(1 for _ in lines) - (path.suffix != ".jsonl"))
    except (OSError, pa.ArrowException):
        return 1
