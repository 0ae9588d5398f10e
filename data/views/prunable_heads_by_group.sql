-- How many heads can each kind of model do without? One row a study, label, procedure and order; means and error bars
-- are over seeds, numbers of heads as in prunable_heads.
--
-- labelled_models.*
-- prunable_heads.*
-- stands_for_procedure: true for the order by ablation_mean; of a procedure without it, for the first by name
-- n_models: models, one for each seed
-- within_1_percent_mean: most heads that can be removed at under 1 % more loss
-- fraction_within_1_percent_mean: within_1_percent_mean divided by total_heads
-- within_5_percent_mean: most heads that can be removed at under 5 % more loss
-- fraction_within_5_percent_mean: within_5_percent_mean divided by total_heads
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
    avg(within_1_percent) AS within_1_percent_mean,
    ci95(within_1_percent) AS within_1_percent_ci95,
    avg(fraction_within_1_percent) AS fraction_within_1_percent_mean,
    ci95(fraction_within_1_percent) AS fraction_within_1_percent_ci95,
    avg(within_5_percent) AS within_5_percent_mean,
    ci95(within_5_percent) AS within_5_percent_ci95,
    avg(fraction_within_5_percent) AS fraction_within_5_percent_mean,
    ci95(fraction_within_5_percent) AS fraction_within_5_percent_ci95
FROM labelled_models
JOIN prunable_heads USING (model_id)
GROUP BY study, label, procedure, order_method
ORDER BY study, label, procedure, order_method
