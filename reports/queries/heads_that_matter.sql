-- Loss, and how many heads can be removed, by number of heads; the setting with the most numbers first.
SELECT
    setting,
    label,
    n_layers,
    total_heads,
    n_head_counts,
    n_models,
    seeds,
    validation_loss_nats_mean,
    validation_loss_nats_ci95,
    validation_loss_nats_values,
    within_1_percent_median,
    within_1_percent_values,
    within_5_percent_median,
    within_5_percent_values,
    random_within_1_percent_median,
    random_within_1_percent_values
FROM heads_that_matter
WHERE study = $study
ORDER BY
    n_head_counts DESC,
    min(validation_loss_nats_mean) OVER (PARTITION BY setting) NULLS LAST,
    setting,
    total_heads,
    label
