-- What was done, and what came of it; over seeds, beside each seed's base. The interval is of the mean over seeds (95 %, Student's t).
SELECT
    what,
    if(n_layers = 1, '1 layer', n_layers || ' layers') AS of,
    count(DISTINCT seed) AS seeds,
    count(*) AS models,
    CASE
        WHEN count(is_censored) = 0 THEN NULL
        ELSE count(*) FILTER (NOT is_censored) || ' of ' || count(is_censored)
    END AS formed,
    avg(delay_log2) AS delay,
    ci95(delay_log2) AS delay_ci95,
    avg(induction_random_period) AS induction,
    avg(induction_random_period - base_induction_random_period) AS induction_difference,
    ci95(induction_random_period - base_induction_random_period) AS induction_difference_ci95,
    avg(set_free_induction) AS set_free,
    avg(loss_difference) AS loss_difference_nats,
    ci95(loss_difference) AS loss_difference_ci95
FROM (
    SELECT
        what,
        n_layers,
        seed,
        any_value(is_censored) AS is_censored,
        avg(delay_log2) AS delay_log2,
        avg(induction_random_period) AS induction_random_period,
        avg(base_induction_random_period) AS base_induction_random_period,
        avg(set_free_induction) AS set_free_induction,
        avg(loss_difference) AS loss_difference
    FROM intervention_effects
    WHERE study = $study
    GROUP BY what, n_layers, seed, model_id
)
GROUP BY what, n_layers
ORDER BY n_layers DESC, what
