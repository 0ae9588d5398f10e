-- One row a model and checkpoint: the losses, and the highest score that any head has by then.
--
-- model_id: models.model_id
-- name: the model's short name, like 2L4H
-- studies: the studies that the model belongs to
-- seed: of weights and batches
-- n_layers: layers of the model
-- step: optimiser steps taken; 0 is the initialisation
-- tokens: tokens seen so far
-- validation_loss_nats: mean loss on validation text, nats per token
-- validation_loss_sem_nats: its standard error over sequences, nats
-- in_context_learning_nats: late minus early loss, nats: negative if context helps
-- repeat_gain_nats: first minus later occurrences in repeated random tokens, nats
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
    name,
    studies,
    seed,
    n_layers,
    step,
    evaluations.tokens,
    evaluations.validation_loss_nats,
    evaluations.validation_loss_sem_nats,
    evaluations.in_context_learning_nats,
    evaluations.repeat_gain_nats,
    best.best_induction_random_period,
    best.best_prefix_matching,
    best.best_previous_token
FROM evaluations
LEFT JOIN best USING (model_id, step)
LEFT JOIN model_summary USING (model_id)
ORDER BY name, seed, model_id, step
