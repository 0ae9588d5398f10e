-- Induction and previous-token scores of every head at every checkpoint, in the model that stands for each label.
SELECT
    label,
    head_label(layer, head) AS head_label,
    evaluations.tokens,
    induction_random_period,
    previous_token
FROM labelled_models
JOIN heads USING (model_id)
JOIN evaluations USING (model_id, step)
WHERE study = $study AND stands_for_label AND evaluations.tokens > 0
ORDER BY label, layer, head, evaluations.tokens
