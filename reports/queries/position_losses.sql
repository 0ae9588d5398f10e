-- Validation loss by position at the last checkpoint, averaged within quarters of a doubling; every model.
SELECT
    label,
    seed,
    model_id,
    avg(position + 1) AS place,
    avg(loss_nats) AS loss_nats
FROM labelled_models
JOIN position_losses USING (model_id)
WHERE study = $study AND loss_nats IS NOT NULL
GROUP BY label, seed, model_id, step, floor(4 * log2(position + 1))
QUALIFY step = max(step) OVER (PARTITION BY model_id)
ORDER BY label, model_id, place
