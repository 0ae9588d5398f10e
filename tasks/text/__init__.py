"""Text on its way to a model: documents, the corpus, its tokens, and batches and windows of them."""
