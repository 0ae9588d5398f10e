-- Does induction need depth? One row a study, depth and setting; means and error bars are over the seeds.
--
-- study: studies.study
-- setting: what else the study's grid varies, like `n_heads=4`; empty if nothing
-- n_layers: layers
-- n_models: models, one a seed
-- best_induction_random_period_mean: the best head's induction_random_period, mean over seeds
-- best_induction_random_period_sd: its standard deviation over seeds
-- best_induction_random_period_ci95: half the width of its 95 % confidence interval
-- best_previous_token_layer_0_mean: the best previous_token in layer 0, mean over seeds
-- best_previous_token_layer_0_sd: its standard deviation over seeds
-- best_previous_token_layer_0_ci95: half the width of its 95 % confidence interval
-- repeat_gain_nats_mean: repeat_gain_nats of the last checkpoint, nats, mean over seeds
-- repeat_gain_nats_sd: its standard deviation over seeds
-- repeat_gain_nats_ci95: half the width of its 95 % confidence interval
-- validation_loss_nats_mean: validation loss of the last checkpoint, nats per token, mean over seeds
-- validation_loss_nats_sd: its standard deviation over seeds
-- validation_loss_nats_ci95: half the width of its 95 % confidence interval
WITH members AS (
    SELECT
        study,
        trim(regexp_replace(cell, '(^| )(seed|n_layers)=\S*', '', 'g')) AS setting,
        model_summary.*
    FROM study_models
    JOIN model_summary USING (model_id)
)
SELECT
    study,
    setting,
    n_layers,
    count(*) AS n_models,
    avg(best_induction_random_period) AS best_induction_random_period_mean,
    stddev_samp(best_induction_random_period) AS best_induction_random_period_sd,
    ci95(best_induction_random_period) AS best_induction_random_period_ci95,
    avg(best_previous_token_layer_0) AS best_previous_token_layer_0_mean,
    stddev_samp(best_previous_token_layer_0) AS best_previous_token_layer_0_sd,
    ci95(best_previous_token_layer_0) AS best_previous_token_layer_0_ci95,
    avg(repeat_gain_nats) AS repeat_gain_nats_mean,
    stddev_samp(repeat_gain_nats) AS repeat_gain_nats_sd,
    ci95(repeat_gain_nats) AS repeat_gain_nats_ci95,
    avg(validation_loss_nats) AS validation_loss_nats_mean,
    stddev_samp(validation_loss_nats) AS validation_loss_nats_sd,
    ci95(validation_loss_nats) AS validation_loss_nats_ci95
FROM members
GROUP BY study, setting, n_layers
ORDER BY study, setting, n_layers
