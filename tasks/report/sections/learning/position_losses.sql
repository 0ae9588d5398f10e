-- Validation loss by position at the last checkpoint, averaged within quarters of a doubling; every model. The last position counts with the one before, since alone it would be noise.
SELECT
    label,
    seed,
    model_id,
    avg(position + 1) AS place,
    avg(loss_nats) AS loss_nats
FROM labelled_models
JOIN (FROM position_losses SELECT *, max(position) OVER (PARTITION BY model_id) AS last_position) USING (model_id)
WHERE study = $study AND loss_nats IS NOT NULL
GROUP BY label, seed, model_id, step, floor(4 * log2(greatest(1, least(position + 1, last_position))))
QUALIFY step = max(step) OVER (PARTITION BY model_id)
ORDER BY label, model_id, place
