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
WHERE study = 'smollm2' AND within_1_percent_median IS NOT NULL
ORDER BY label
