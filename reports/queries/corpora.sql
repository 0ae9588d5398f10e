-- What the models read.
SELECT source, documents, bytes, train_tokens, validation_tokens, corpora.vocabulary, bytes_per_token,
    unigram_loss_nats, bigram_loss_nats, left(text_sha256, 12) AS text_sha256
FROM corpora
WHERE corpus_id IN (SELECT corpus_id FROM study_models JOIN models USING (model_id) WHERE study = $study)
ORDER BY source, text_sha256
