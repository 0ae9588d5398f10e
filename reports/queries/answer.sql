-- What the answer is made of: each kind of model, the best induction first, and what the heads of the model that stands for it
-- do; models to which something was done in training come after all others.
WITH untrained AS (
    SELECT model_id, best_induction_random_period AS untrained_induction FROM learning_curves WHERE step = 0
),
formations AS (
    FROM phase_changes WHERE score = 'prefix_matching'
)
SELECT
    model_groups.label,
    model_groups.n_layers,
    n_models,
    seeds,
    typical_seed,
    models.tokens,
    learned,
    imported_as,
    checkpoints,
    models.total_heads,
    n_with_induction_head,
    validation_loss_nats_mean,
    validation_loss_nats_ci95,
    validation_loss_nats_values,
    repeat_gain_nats_mean,
    repeat_gain_nats_ci95,
    repeat_gain_nats_values,
    best_induction_random_period_mean,
    best_induction_random_period_values,
    best_previous_token_layer_0_mean,
    best_previous_token_layer_0_values,
    n_formed,
    n_unresolved,
    n_still_rising,
    formed_from_tokens,
    formed_by_tokens,
    best_induction_head,
    untrained_induction,
    repeats_beyond_bigrams,
    best_previous_token_head_layer_0,
    best_previous_token_layer_0 >= previous_token_attention() AS has_previous_token_head,
    kind AS formation,
    in_context_learning_share,
    intervened.model_id IS NOT NULL AS is_intervened
FROM model_groups
JOIN model_summary ON model_summary.model_id = typical_model_id
JOIN models ON models.model_id = typical_model_id
LEFT JOIN untrained ON untrained.model_id = typical_model_id
LEFT JOIN formations ON formations.model_id = typical_model_id
LEFT JOIN (SELECT DISTINCT model_id FROM intervention_effects WHERE study = $study) AS intervened
    ON intervened.model_id = typical_model_id
WHERE study = $study
ORDER BY is_intervened, place
