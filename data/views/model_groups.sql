-- How did each kind of model turn out, the best induction first? One row a study and label, means and error bars over seeds.
--
-- labelled_models.*
-- n_models: models, one for each seed
-- place: within the study, counted from 1, the highest best_induction_random_period_mean first; of equals, the lowest validation loss
-- seeds: the seed of each model
-- typical_model_id: the model that stands for the label, as in labelled_models
-- typical_seed: its seed
-- parameters: its trained numbers
-- validation_loss_nats_mean: validation loss of the last checkpoint, nats per token, mean over seeds
-- repeat_gain_nats_mean: repeat_gain_nats of the last checkpoint, nats, mean over seeds
-- in_context_learning_nats_mean: in_context_learning_nats of the last checkpoint, nats, mean over seeds
-- best_induction_random_period_mean: the best head's induction_random_period, mean over seeds
-- n_with_induction_head: models in which a head's role in head_summary is induction; NULL if not measured
-- best_previous_token_layer_0_mean: the best previous_token in layer 0, mean over seeds
-- n_formed: models whose prefix_matching rises abruptly, as in phase_changes; NULL if that can be told of none
-- n_unresolved: models whose prefix_matching rises, but at checkpoints too few, or with errors too large, to tell how
-- n_still_rising: of those that rise abruptly, models whose rise had not ended when training did
-- formed_from_tokens: the earliest of these models' windows begins at this checkpoint, tokens
-- formed_by_tokens: the latest of these models' windows ends at this checkpoint, tokens
WITH formations AS (
    SELECT model_id, kind, has_ended, window_start_tokens, window_end_tokens FROM phase_changes WHERE score = 'prefix_matching'
)
SELECT
    study,
    label,
    any_value(labelled_models.n_layers) AS n_layers,
    count(*) AS n_models,
    row_number() OVER (
        PARTITION BY study
        ORDER BY avg(best_induction_random_period) DESC NULLS LAST, avg(validation_loss_nats) NULLS LAST, label
    ) AS place,
    list(labelled_models.seed ORDER BY labelled_models.seed, model_id) AS seeds,
    max(model_id) FILTER (stands_for_label) AS typical_model_id,
    max(labelled_models.seed) FILTER (stands_for_label) AS typical_seed,
    max(parameters) FILTER (stands_for_label) AS parameters,
    avg(validation_loss_nats) AS validation_loss_nats_mean,
    ci95(validation_loss_nats) AS validation_loss_nats_ci95,
    list(validation_loss_nats ORDER BY labelled_models.seed, model_id) AS validation_loss_nats_values,
    avg(repeat_gain_nats) AS repeat_gain_nats_mean,
    ci95(repeat_gain_nats) AS repeat_gain_nats_ci95,
    list(repeat_gain_nats ORDER BY labelled_models.seed, model_id) AS repeat_gain_nats_values,
    avg(in_context_learning_nats) AS in_context_learning_nats_mean,
    ci95(in_context_learning_nats) AS in_context_learning_nats_ci95,
    list(in_context_learning_nats ORDER BY labelled_models.seed, model_id) AS in_context_learning_nats_values,
    avg(best_induction_random_period) AS best_induction_random_period_mean,
    list(best_induction_random_period ORDER BY labelled_models.seed, model_id) AS best_induction_random_period_values,
    sum(has_induction_head::INTEGER)::INTEGER AS n_with_induction_head,
    avg(best_previous_token_layer_0) AS best_previous_token_layer_0_mean,
    list(best_previous_token_layer_0 ORDER BY labelled_models.seed, model_id) AS best_previous_token_layer_0_values,
    sum((nullif(kind, 'unresolved') = 'abrupt')::INTEGER)::INTEGER AS n_formed,
    count(kind) FILTER (kind = 'unresolved') AS n_unresolved,
    count(has_ended) FILTER (NOT has_ended) AS n_still_rising,
    min(window_start_tokens) AS formed_from_tokens,
    max(window_end_tokens) AS formed_by_tokens
FROM labelled_models
JOIN model_summary USING (model_id)
LEFT JOIN formations USING (model_id)
GROUP BY study, label
ORDER BY study, place
