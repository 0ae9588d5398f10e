-- How many heads can each kind of model do without? One row a study, label, procedure and order; numbers of heads are those
-- of prunable_heads.
--
-- labelled_models.*
-- prunable_heads.*
-- stands_for_procedure: true for the order by ablation_mean; of a procedure without it, for the first by name
-- n_models: models, one for each seed
-- within_1_percent_median: most heads that can be removed at under 1 % more loss, the median over seeds
-- fraction_within_1_percent_median: within_1_percent_median divided by total_heads
-- within_5_percent_median: most heads that can be removed at under 5 % more loss, the median over seeds
-- fraction_within_5_percent_median: within_5_percent_median divided by total_heads
SELECT
    study,
    label,
    any_value(labelled_models.n_layers) AS n_layers,
    round(avg(total_heads))::INTEGER AS total_heads,
    procedure,
    order_method,
    row_number() OVER (
        PARTITION BY study, label, procedure ORDER BY order_method <> 'ablation_mean', order_method
    ) = 1 AS stands_for_procedure,
    count(*) AS n_models,
    median(within_1_percent) AS within_1_percent_median,
    list(within_1_percent ORDER BY labelled_models.seed, model_id) AS within_1_percent_values,
    median(fraction_within_1_percent) AS fraction_within_1_percent_median,
    list(fraction_within_1_percent ORDER BY labelled_models.seed, model_id) AS fraction_within_1_percent_values,
    median(within_5_percent) AS within_5_percent_median,
    list(within_5_percent ORDER BY labelled_models.seed, model_id) AS within_5_percent_values,
    median(fraction_within_5_percent) AS fraction_within_5_percent_median,
    list(fraction_within_5_percent ORDER BY labelled_models.seed, model_id) AS fraction_within_5_percent_values
FROM labelled_models
JOIN prunable_heads USING (model_id)
GROUP BY study, label, procedure, order_method
ORDER BY study, label, procedure, order_method
