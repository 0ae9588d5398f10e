"""Run every benchmark: `python -m benchmarks`; about 25 minutes, most of them for the 2 GB corpus."""

from benchmarks import ablation, circuits, corpus, training

training.main()
circuits.main()
ablation.main()
corpus.main(megabytes=2_000)
