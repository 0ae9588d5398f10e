-- Loss by occurrence in repeated random tokens at the last checkpoint; every model.
SELECT label, labelled_models.seed, model_id, occurrence, loss_nats, vocabulary
FROM labelled_models
JOIN models USING (model_id)
JOIN repeat_losses USING (model_id)
WHERE study = $study AND loss_nats IS NOT NULL
QUALIFY step = max(step) OVER (PARTITION BY model_id)
ORDER BY label, model_id, occurrence
