-- Training loss, averaged within tenths of a factor e in tokens, and validation loss of every model.
SELECT
    label,
    labelled_models.seed,
    model_id,
    'training' AS split,
    avg(training.tokens) AS tokens,
    avg(training.loss_nats) AS loss_nats
FROM labelled_models
JOIN training USING (model_id)
WHERE study = $study AND training.tokens > 0 AND training.loss_nats IS NOT NULL
GROUP BY label, labelled_models.seed, model_id, floor(10 * ln(training.tokens))
UNION ALL
SELECT label, labelled_models.seed, model_id, 'validation', evaluations.tokens, validation_loss_nats
FROM labelled_models
JOIN evaluations USING (model_id)
WHERE study = $study AND evaluations.tokens > 0 AND validation_loss_nats IS NOT NULL
ORDER BY label, model_id, split, tokens
