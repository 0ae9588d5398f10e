-- Every head's score by every method of importance, in the model that stands for each label.
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
WHERE study = $study AND stands_for_label
ORDER BY label, method, layer, head
