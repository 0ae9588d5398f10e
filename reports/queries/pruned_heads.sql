-- How many heads of each kind of model can be removed in iterative pruning by ablation_mean, and in random orders.
SELECT
    label,
    total_heads,
    within_1_percent_mean,
    within_1_percent_ci95,
    within_5_percent_mean,
    within_5_percent_ci95,
    random_within_1_percent_mean,
    random_within_1_percent_ci95
FROM heads_that_matter
WHERE study = $study AND within_1_percent_mean IS NOT NULL
ORDER BY label
