-- One row a model and checkpoint: its losses, and the highest score that any head has at that step.
--
-- named_models.*
-- evaluations.*
-- best_induction_random_period: of the model's heads, the highest induction_random_period at the step
-- best_prefix_matching: of the model's heads, the highest prefix_matching at the step
-- best_previous_token: of the model's heads, the highest previous_token at the step
WITH best AS (
    SELECT
        model_id,
        step,
        max(induction_random_period) AS best_induction_random_period,
        max(prefix_matching) AS best_prefix_matching,
        max(previous_token) AS best_previous_token
    FROM heads
    GROUP BY model_id, step
)
SELECT
    model_id,
    named_models.* EXCLUDE (model_id),
    step,
    tokens,
    validation_loss_nats,
    validation_loss_sem_nats,
    in_context_learning_nats,
    repeat_gain_nats,
    best_induction_random_period,
    best_prefix_matching,
    best_previous_token
FROM evaluations
LEFT JOIN best USING (model_id, step)
LEFT JOIN named_models USING (model_id)
ORDER BY name, seed, model_id, step
