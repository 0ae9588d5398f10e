-- Losses of every model at every checkpoint; of one of which no loss was measured, its last checkpoint alone.
SELECT model_id, step, tokens, validation_loss_nats, repeat_gain_nats, in_context_learning_nats
FROM (
    FROM evaluations
    UNION ALL BY NAME
    SELECT model_id, steps AS step, tokens FROM models ANTI JOIN evaluations USING (model_id)
)
SEMI JOIN (FROM study_models WHERE study = $study) USING (model_id)
ORDER BY model_id, step
