-- How many heads of each kind of model can be removed in iterative pruning by ablation_mean, and in random orders.
SELECT
    label,
    total_heads,
    within_1_percent_median,
    within_1_percent_values,
    within_5_percent_median,
    within_5_percent_values,
    random_within_1_percent_median,
    random_within_1_percent_values
FROM heads_that_matter
WHERE study = $study AND within_1_percent_median IS NOT NULL
ORDER BY label
