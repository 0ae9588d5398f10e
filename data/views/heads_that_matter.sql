-- How many heads, and how many of them matter? One row a study and label with heads: the loss, and how many heads can
-- be removed in iterative pruning by ablation_mean and in random orders.
--
-- model_groups.*
-- setting: the place in the study's grid without n_heads and seed, like `n_layers=2`; empty if nothing is left
-- total_heads: heads in all layers, without those that training removed; mean over seeds, rounded
-- n_head_counts: how many different numbers of heads the study's models of this setting have
-- prunable_heads_by_group.*
-- random_within_1_percent_median: most heads that can be removed at under 1 % more loss in a random order on average, the median over seeds
WITH settings AS (
    SELECT
        study,
        label,
        without_axes(any_value(cell), 'seed|n_heads') AS setting,
        any_value(coalesce(list_sum(heads_left), total_heads)) AS total_heads
    FROM labelled_models
        JOIN models USING (model_id)
    GROUP BY study, label
    HAVING any_value(models.total_heads) > 0
),
counts AS (
    SELECT study, setting, count(DISTINCT total_heads) AS n_head_counts FROM settings GROUP BY study, setting
)
SELECT
    study,
    setting,
    label,
    model_groups.n_layers,
    coalesce(iterative.total_heads, settings.total_heads) AS total_heads,
    n_head_counts,
    model_groups.n_models,
    seeds,
    validation_loss_nats_mean,
    validation_loss_nats_ci95,
    validation_loss_nats_values,
    iterative.within_1_percent_median,
    iterative.within_1_percent_values,
    iterative.within_5_percent_median,
    iterative.within_5_percent_values,
    random.within_1_percent_median AS random_within_1_percent_median,
    random.within_1_percent_values AS random_within_1_percent_values
FROM settings
JOIN counts USING (study, setting)
JOIN model_groups USING (study, label)
LEFT JOIN prunable_heads_by_group AS iterative
    ON (iterative.study, iterative.label) = (settings.study, settings.label)
    AND (iterative.procedure, iterative.order_method) = ('iterative', 'ablation_mean')
LEFT JOIN prunable_heads_by_group AS random
    ON (random.study, random.label) = (settings.study, settings.label)
    AND random.procedure = 'random'
ORDER BY study, setting, total_heads, label
