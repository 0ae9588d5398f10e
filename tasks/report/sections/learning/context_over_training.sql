-- What context buys, checkpoint by checkpoint, for every model.
SELECT label, labelled_models.seed, model_id, learning_curves.tokens, repeat_gain_nats, best_induction_random_period
FROM labelled_models
JOIN learning_curves USING (model_id)
WHERE study = $study AND learning_curves.tokens > 0
ORDER BY label, model_id, learning_curves.tokens
