-- What do more heads buy at a given width? One row a study and shape; means and error bars are over seeds.
--
-- study: studies.study
-- setting: the place in the study's grid without sizes and seed, like `positions=rotary`; empty if nothing is left
-- models.*
-- n_models: models, one for each seed
-- seeds: the seed of each model
-- validation_loss_nats_mean: validation loss of the last checkpoint, nats per token, mean over seeds
-- best_induction_random_period_mean: the best head's induction_random_period, mean over seeds
-- best_previous_token_mean: the best head's previous_token, mean over seeds
-- repeat_gain_nats_mean: repeat_gain_nats of the last checkpoint, nats, mean over seeds
-- in_context_learning_nats_mean: in_context_learning_nats of the last checkpoint, nats, mean over seeds
SELECT
    study,
    drop_axes(cell, 'seed|n_layers|n_heads|d_model') AS setting,
    d_model,
    n_layers,
    n_heads,
    heads_per_layer,
    total_heads,
    d_head,
    count(*) AS n_models,
    list(seed ORDER BY seed, model_id) AS seeds,
    avg(validation_loss_nats) AS validation_loss_nats_mean,
    stddev_samp(validation_loss_nats) AS validation_loss_nats_sd,
    ci95(validation_loss_nats) AS validation_loss_nats_ci95,
    list(validation_loss_nats ORDER BY seed, model_id) AS validation_loss_nats_values,
    avg(best_induction_random_period) AS best_induction_random_period_mean,
    list(best_induction_random_period ORDER BY seed, model_id) AS best_induction_random_period_values,
    avg(best_previous_token) AS best_previous_token_mean,
    list(best_previous_token ORDER BY seed, model_id) AS best_previous_token_values,
    avg(repeat_gain_nats) AS repeat_gain_nats_mean,
    stddev_samp(repeat_gain_nats) AS repeat_gain_nats_sd,
    ci95(repeat_gain_nats) AS repeat_gain_nats_ci95,
    list(repeat_gain_nats ORDER BY seed, model_id) AS repeat_gain_nats_values,
    avg(in_context_learning_nats) AS in_context_learning_nats_mean,
    stddev_samp(in_context_learning_nats) AS in_context_learning_nats_sd,
    ci95(in_context_learning_nats) AS in_context_learning_nats_ci95,
    list(in_context_learning_nats ORDER BY seed, model_id) AS in_context_learning_nats_values
FROM study_models
JOIN model_summary USING (model_id)
GROUP BY study, setting, d_model, n_layers, n_heads, heads_per_layer, total_heads, d_head
ORDER BY study, setting, d_model, n_layers, total_heads, heads_per_layer
