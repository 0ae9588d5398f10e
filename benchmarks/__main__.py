"""Run every benchmark: `python -m benchmarks`; about twenty minutes, most of them for the 2 GB corpus."""

from benchmarks import circuits, corpus, training

training.main()
circuits.main()
corpus.main(megabytes=2_000)
