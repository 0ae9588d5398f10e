-- What was checked of imported models before anything was measured: the last checkpoint, and the highest of all.
SELECT
    coalesce(any_value(models.imported_as), model_id) AS model,
    CASE checked
        WHEN 'finite' THEN 'weights that aren''t finite'
        WHEN 'parity' THEN 'logits against a second reading of the file'
        WHEN 'round_trip' THEN 'documents that survive the tokenizer'
        WHEN 'unknown_tokens' THEN 'unknown tokens'
        WHEN 'loss_nats' THEN 'loss, nats per token'
        WHEN 'loss_bits_per_byte' THEN 'loss, bits per byte'
        WHEN 'notes' THEN 'to be known'
        ELSE checked
    END AS checked,
    coalesce(format('{:.3g}', arg_max(value, step)), '') AS last,
    coalesce(format('{:.3g}', max(value)), '') AS highest,
    coalesce(format('{:.3g}', arg_max(bar, step)), '') AS bar,
    count(*) AS checkpoints,
    arg_max(detail, step) AS detail
FROM study_models
JOIN certificates USING (model_id)
LEFT JOIN models USING (model_id)
WHERE study = $study
GROUP BY model_id, certificates.checked
ORDER BY model_id, list_position(
    ['finite', 'parity', 'round_trip', 'unknown_tokens', 'loss_nats', 'loss_bits_per_byte', 'continuation', 'notes'],
    certificates.checked
)
