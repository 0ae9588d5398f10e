-- What was done, and what came of it, beside each seed's base. The unit is the seed: intervals are of the mean over seeds (95 %, Student's t).
WITH by_seed AS (
    SELECT
        what,
        n_layers,
        seed,
        count(*) AS n_models,
        count(*) FILTER (NOT is_censored) AS n_formed,
        count(is_censored) AS n_known,
        avg(delay_log2) AS delay,
        avg(induction_random_period) AS induction,
        avg(induction_random_period - base_induction_random_period) AS induction_difference,
        avg(set_free_induction) AS set_free,
        avg(loss_difference) AS loss_difference
    FROM intervention_effects
    WHERE study = $study
    GROUP BY what, n_layers, seed
)
SELECT
    what,
    if(n_layers = 1, '1 layer', n_layers || ' layers') AS of,
    count(*) AS seeds,
    sum(n_models)::INTEGER AS models,
    if(sum(n_known) > 0, sum(n_formed) || ' of ' || sum(n_known), NULL) AS formed,
    avg(delay) AS delay,
    ci95(delay) AS delay_ci95,
    avg(induction) AS induction,
    avg(induction_difference) AS induction_difference,
    ci95(induction_difference) AS induction_difference_ci95,
    avg(set_free) AS set_free,
    avg(loss_difference) AS loss_difference_nats,
    ci95(loss_difference) AS loss_difference_ci95
FROM by_seed
GROUP BY what, n_layers
ORDER BY n_layers DESC, what
