-- Validation loss by position at the last checkpoint, averaged within quarters of a doubling; the model that stands for each label.
SELECT
    label,
    model_id,
    avg(position + 1) AS place,
    avg(loss_nats) AS loss_nats
FROM labelled_models
JOIN position_losses USING (model_id)
WHERE study = $study AND stands_for_label AND loss_nats IS NOT NULL
GROUP BY label, model_id, step, floor(4 * log2(position + 1))
QUALIFY step = max(step) OVER (PARTITION BY model_id)
ORDER BY label, place
