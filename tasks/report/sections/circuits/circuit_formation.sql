-- Checkpoint by checkpoint, the reader and the first writer of circuits by K-composition, what joins them, and the loss.
SELECT
    labelled_models.label,
    reader,
    writer,
    n_writers,
    evaluations.tokens,
    writers.previous_token,
    readers.prefix_matching,
    readers.induction_random_period,
    compositions.score AS k_score,
    sqrt(compositions.null_mean) AS k_chance,
    validation_loss_nats
FROM labelled_models
JOIN induction_circuits USING (model_id)
JOIN evaluations USING (model_id)
JOIN heads AS readers
    ON (readers.model_id, readers.step) = (evaluations.model_id, evaluations.step)
    AND head_label(readers.layer, readers.head) = reader
JOIN heads AS writers
    ON (writers.model_id, writers.step) = (evaluations.model_id, evaluations.step)
    AND head_label(writers.layer, writers.head) = writer
LEFT JOIN compositions
    ON (compositions.model_id, compositions.step) = (evaluations.model_id, evaluations.step)
    AND (writer_layer, writer_head) = (writers.layer, writers.head)
    AND (reader_layer, reader_head) = (readers.layer, readers.head)
    AND compositions.kind = 'K'
WHERE study = $study
    AND stands_for_label
    AND is_strongest
    AND reader_role IN ('induction', 'anti-induction')
    AND depends
    AND induction_circuits.kind = 'K'
    AND evaluations.tokens > 0
ORDER BY label, evaluations.tokens
