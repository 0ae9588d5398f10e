-- How many heads can be removed at under 1 % / at under 5 % more loss, by procedure, with error bars over seeds.
WITH written AS (
    SELECT
        *,
        coalesce(
            format('{:.1f} ± {:.1f}', within_1_percent_mean, within_1_percent_ci95),
            replace(format('{:.1f}', within_1_percent_mean), '.0', '')
        ) AS one,
        coalesce(
            format('{:.1f} ± {:.1f}', within_5_percent_mean, within_5_percent_ci95),
            replace(format('{:.1f}', within_5_percent_mean), '.0', '')
        ) AS five
    FROM prunable_heads_by_group
    WHERE study = $study AND stands_for_procedure
)
SELECT
    label AS model,
    max(n_models) AS seeds,
    any_value(total_heads) AS heads,
    max(one || ' / ' || five) FILTER (procedure = 'iterative') AS iterative,
    max(one || ' / ' || five) FILTER (procedure = 'iterative_retrain') AS retrained,
    max(one || ' / ' || five) FILTER (procedure = 'one_shot') AS one_shot,
    max(one || ' / ' || five) FILTER (procedure = 'gates') AS gates,
    max(one || ' / ' || five) FILTER (procedure = 'random') AS random
FROM written
GROUP BY label, n_layers
ORDER BY n_layers, any_value(total_heads), label
