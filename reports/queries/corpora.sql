-- What the models read.
SELECT DISTINCT
    source,
    documents,
    bytes,
    train_tokens,
    validation_tokens,
    vocabulary,
    bytes_per_token,
    text_sha256
FROM study_models
JOIN models USING (model_id)
JOIN corpora USING (corpus_id)
WHERE study = $study
ORDER BY source, text_sha256
