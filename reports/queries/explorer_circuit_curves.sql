-- How much of the difference between prompts circuits of each size make, and how much as many random edges do.
WITH by_size AS (
    SELECT
        model_id,
        prompts,
        n_edges,
        any_value(faithfulness) FILTER (edges_by = 'absolute') AS faithfulness,
        any_value(completeness) FILTER (edges_by = 'absolute') AS completeness,
        min(faithfulness) FILTER (edges_by = 'random') AS random_low,
        max(faithfulness) FILTER (edges_by = 'random') AS random_high
    FROM circuit_curves
    WHERE pairs = 'judged'
    GROUP BY ALL
)
SELECT by_size.*
FROM labelled_models
JOIN by_size USING (model_id)
WHERE study = $study
ORDER BY model_id, prompts, n_edges
