"""Every stage by name: those of [analysis], and those that make text, models, the record and the report."""

from headstream.tasks.study.analyses import DECLARED
from headstream.tasks.study.stage import Cost, Stage

CORPUS = Stage(
    "corpus",
    work="headstream.tasks.text.corpus_writing:write_unchanging_corpus",
    cost=Cost(bytes_per_second=20e6),
    title="read the corpus",
    in_subprocess=False,
)
TOKENS = Stage(
    "tokens",
    work="headstream.tasks.text.token_writing:write_tokens",
    reads=("corpus",),
    writes=("corpora", "corpus_repeats"),
    incidental=("corpora.parquet", "corpus_repeats.parquet"),  # where text was found, and what is told of it
    cost=Cost(bytes_per_second=10e6),
    title="tokenise",
    in_subprocess=False,
)
COSTS = Stage(
    "costs",
    work="headstream.tasks.measuring.costs:time_passes",
    writes=("costs",),
    incidental=("costs.parquet",),  # it records the clock
    cost=Cost(seconds=180.0, by_history="mean"),
    title="measure costs",
)
TRAINING = Stage(
    "training",
    work="headstream.tasks.training.model_training:train_model",
    reads=("tokens",),
    writes=("interventions", "models", "training"),
    cost=Cost(by_history="speed"),
    incidental=("models.parquet", "training.parquet"),  # they record the clock
    title="train {subject}",
    is_resumable=True,
)
IMPORT = Stage(
    "import",
    work="headstream.tasks.importing.model_import:import_model",
    reads=("tokens", "corpus"),
    writes=("models", "certificates"),
    cost=Cost(passes=90, large_passes=90, each_checkpoint=True, bytes_per_second=30e6),
    title="import {subject}",
)
RECORD = Stage(
    "study",
    work="headstream.tasks.results.study_record:write_record",
    writes=("studies", "study_models"),
    incidental=("studies.parquet", "study_models.parquet"),  # they record the clock
    title="record the study",
    in_subprocess=False,
)
REPORT = Stage(
    "report",
    work="headstream.tasks.report.rendering:render_report",
    reads=("study",),
    incidental=("report.md",),  # it says when the study ran, and for how long
    title="write the report",
    in_subprocess=False,
)

STAGES = {stage.name: stage for stage in (CORPUS, TOKENS, COSTS, TRAINING, IMPORT, *DECLARED.values(), RECORD, REPORT)}
