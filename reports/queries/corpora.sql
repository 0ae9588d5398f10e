-- What the models read, and how much of it losses are measured on: sequences of so many documents.
SELECT source, documents, bytes, empty, skipped, replaced, left_out, train_tokens, validation_tokens, corpora.vocabulary, bytes_per_token,
    unigram_loss_nats AS validation_unigram_loss_nats, bigram_loss_nats AS validation_bigram_loss_nats, n_windows AS sequences_measured_on, n_documents AS documents_they_are_from,
    left(text_sha256, 12) AS text_sha256
FROM corpora
LEFT JOIN (
    SELECT corpus_id, max(n_windows) AS n_windows, max(n_documents) AS n_documents
    FROM study_models
    JOIN models USING (model_id)
    JOIN evaluations USING (model_id)
    WHERE study = $study
    GROUP BY corpus_id
) USING (corpus_id)
WHERE corpus_id IN (SELECT corpus_id FROM study_models JOIN models USING (model_id) WHERE study = $study)
ORDER BY source, text_sha256
