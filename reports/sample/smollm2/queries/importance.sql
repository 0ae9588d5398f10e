SELECT
    label,
    head_label(layer, head) AS head_label,
    layer,
    head,
    method,
    score,
    normalised
FROM labelled_models
JOIN importance USING (model_id)
WHERE study = 'smollm2' AND stands_for_label
ORDER BY label, method, layer, head
