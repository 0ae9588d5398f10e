"""Text on its way to a model: documents, the corpus, its tokens, and the batches and windows cut from those."""
