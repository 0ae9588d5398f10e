-- What two runs, or two studies, are compared by: one row a kind of model and metric, error bars over seeds.
WITH speeds AS (
    SELECT study, label, avg(tokens_per_second) AS tokens_per_second_mean, ci95(tokens_per_second) AS tokens_per_second_ci95
    FROM labelled_models
    JOIN models USING (model_id)
    GROUP BY study, label
),
metrics AS (
    SELECT label, n_models, unnest([
        {'metric': 'validation_loss_nats', 'mean': validation_loss_nats_mean, 'ci95': validation_loss_nats_ci95},
        {'metric': 'repeat_gain_nats', 'mean': repeat_gain_nats_mean, 'ci95': repeat_gain_nats_ci95},
        {'metric': 'in_context_learning_nats', 'mean': in_context_learning_nats_mean, 'ci95': in_context_learning_nats_ci95},
        {
            'metric': 'best_induction_random_period',
            'mean': best_induction_random_period_mean,
            'ci95': best_induction_random_period_ci95
        },
        {
            'metric': 'best_previous_token_layer_0',
            'mean': best_previous_token_layer_0_mean,
            'ci95': best_previous_token_layer_0_ci95
        },
        {'metric': 'formed_tokens', 'mean': formed_tokens_mean, 'ci95': formed_tokens_ci95},
        {'metric': 'tokens_per_second', 'mean': tokens_per_second_mean, 'ci95': tokens_per_second_ci95}
    ], recursive := true)
    FROM model_groups
    JOIN speeds USING (study, label)
    WHERE study = $study
)
SELECT label, metric, mean, ci95, n_models
FROM metrics
WHERE mean IS NOT NULL
ORDER BY label, metric
