"""Run every benchmark, and print what each target asks and gets: `python -m benchmarks`; three hours.

An hour is for the three studies, one for the 2 GB corpus. The ratio to TransformerLens wants an environment of its own:
`make peers`.
"""

from benchmarks import (
    ablation,
    analyses,
    circuits,
    corpus,
    intervention_steps,
    many_artifacts,
    many_rows,
    prompts,
    shipped_studies,
    study,
    training,
)
from benchmarks.targets import table

found = study.main()
training.main()
intervention_steps.main()
circuits.main()
ablation.main()
found |= prompts.main()
found |= analyses.main()
found |= many_rows.main()
found |= many_artifacts.main()
found |= shipped_studies.main()
corpus.main(megabytes=2_000)
print(table(found))
