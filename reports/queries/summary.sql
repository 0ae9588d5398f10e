-- What two runs, or two studies, are compared by: one row a kind of model and metric, with the value of each seed.
WITH measured AS (
    SELECT label, labelled_models.seed, unnest([
        {'metric': 'validation_loss_nats', 'value': validation_loss_nats},
        {'metric': 'repeat_gain_nats', 'value': repeat_gain_nats},
        {'metric': 'in_context_learning_nats', 'value': in_context_learning_nats},
        {'metric': 'best_induction_random_period', 'value': best_induction_random_period},
        {'metric': 'best_previous_token_layer_0', 'value': best_previous_token_layer_0},
        {'metric': 'tokens_per_second', 'value': tokens_per_second}
    ], recursive := true)
    FROM labelled_models
    JOIN model_summary USING (model_id)
    WHERE study = $study
),
asked AS (
    SELECT label, labelled_models.seed, unnest([
        {'metric': 'accuracy in ' || prompts, 'value': accuracy},
        {'metric': 'log-odds in ' || prompts, 'value': clean_nats},
        {'metric': 'cmd in ' || prompts, 'value': cmd_absolute}
    ], recursive := true)
    FROM labelled_models
    JOIN prompts_in_short USING (model_id)
    WHERE study = $study
)
SELECT label, metric, list(seed ORDER BY seed) AS seeds, list(value ORDER BY seed) AS metric_values
FROM (FROM measured UNION ALL FROM asked)
WHERE value IS NOT NULL
GROUP BY label, metric
ORDER BY label, metric
