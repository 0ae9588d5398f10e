-- How many heads can be removed at under 1 % / at under 5 % more loss, by procedure: the median and the range over seeds.
WITH written AS (
    SELECT
        *,
        array_to_string(list_transform([within_1_percent_values, within_5_percent_values], lambda of_seeds:
            replace(format('{:.1f}', list_median(of_seeds)), '.0', '')
            || if(list_min(of_seeds) < list_max(of_seeds), replace(format(
                ' ({:.1f} to {:.1f})', list_min(of_seeds), list_max(of_seeds)
            ), '.0', ''), '')
        ), ' / ') AS counts
    FROM prunable_heads_by_group
    WHERE study = $study AND stands_for_procedure
)
SELECT
    label AS model,
    max(n_models) AS seeds,
    any_value(total_heads) AS heads,
    max(counts) FILTER (procedure = 'iterative') AS iterative,
    max(counts) FILTER (procedure = 'iterative_retrain') AS retrained,
    max(counts) FILTER (procedure = 'one_shot') AS one_shot,
    max(counts) FILTER (procedure = 'gates') AS gates,
    max(counts) FILTER (procedure = 'random') AS random
FROM written
GROUP BY label, n_layers
ORDER BY n_layers, any_value(total_heads), label
