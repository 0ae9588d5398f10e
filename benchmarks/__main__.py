"""Run every benchmark: `python -m benchmarks`; about an hour, most of them for the 2 GB corpus."""

from benchmarks import ablation, analyses, circuits, corpus, many_rows, study, training

study.main()
training.main()
circuits.main()
ablation.main()
analyses.main()
many_rows.main()
corpus.main(megabytes=2_000)
