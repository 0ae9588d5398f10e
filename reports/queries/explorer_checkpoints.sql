-- Losses of every model at every checkpoint.
SELECT model_id, step, tokens, validation_loss_nats, repeat_gain_nats, in_context_learning_nats
FROM evaluations
SEMI JOIN (FROM study_models WHERE study = $study) USING (model_id)
ORDER BY model_id, step
