-- How large the circuit of each behaviour is in each kind of model that was asked, where there is more to compare than one model.
SELECT
    prompts,
    label AS model,
    n_can || ' of ' || n_models AS seeds_that_can,
    accuracy,
    accuracy_values,
    edges_enough AS edges,
    if(n_can = 0, 'no circuit', NULL) AS edges_note,
    edges_enough_values AS edges_values,
    edges_enough_ci95 AS edges_ci95,
    edges_share AS edges_of_all,
    if(n_can = 0, 'no circuit', NULL) AS edges_of_all_note,
    edges_share_values AS edges_of_all_values,
    cmd,
    if(n_can = 0, 'no circuit', NULL) AS cmd_note,
    cmd_values,
    cmd_ci95,
    cmd_random AS cmd_of_random,
    if(n_can = 0, 'no circuit', NULL) AS cmd_of_random_note,
    cmd_random_values AS cmd_of_random_values
FROM circuits_by_group
WHERE study = $study
QUALIFY max(n_models) OVER (PARTITION BY prompts) > 1 OR count(*) FILTER (n_can > 0) OVER (PARTITION BY prompts) > 1
ORDER BY prompts, n_layers, label
