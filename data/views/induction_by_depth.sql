-- Does induction need depth? One row a study, depth and setting; scores and losses are means over seeds.
--
-- study: studies.study
-- setting: the place in the study's grid without n_layers and seed, like `n_heads=4`; empty if nothing is left
-- n_layers: layers
-- n_models: models, one for each seed
-- induction: the best head's induction_random_period
-- previous_token: the best previous_token in layer 0
-- repeat_gain_nats: repeat_gain_nats of the last checkpoint, nats
-- validation_loss_nats: validation loss of the last checkpoint, nats per token
SELECT
    study,
    drop_axes(cell, 'seed|n_layers') AS setting,
    n_layers,
    count(*) AS n_models,
    avg(best_induction_random_period) AS induction,
    list(best_induction_random_period ORDER BY seed, model_id) AS induction_values,
    avg(best_previous_token_layer_0) AS previous_token,
    list(best_previous_token_layer_0 ORDER BY seed, model_id) AS previous_token_values,
    avg(repeat_gain_nats) AS repeat_gain_nats,
    ci95(repeat_gain_nats) AS repeat_gain_ci95,
    avg(validation_loss_nats) AS validation_loss_nats,
    ci95(validation_loss_nats) AS validation_loss_ci95
FROM study_models
JOIN model_summary USING (model_id)
GROUP BY study, setting, n_layers
ORDER BY study, setting, n_layers
