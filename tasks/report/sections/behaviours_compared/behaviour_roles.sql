-- In how many seeds a head of each role carries a behaviour: the seeds in which some head's share is 5 % or more, and the largest share of
-- such a head in each seed.
WITH asked AS (
    SELECT study, label, prompts, model_id, labelled_models.seed, labelled_models.n_layers
    FROM labelled_models
    JOIN prompt_circuits USING (model_id)
),
roles AS (
    SELECT study, label, asked.prompts, model_id, asked.seed, asked.n_layers, role, max(share) AS largest
    FROM asked
    JOIN circuit_heads USING (model_id)
    WHERE circuit_heads.prompts = asked.prompts AND role IS NOT NULL AND role <> 'other'
    GROUP BY ALL
),
counted AS (SELECT study, label, prompts, count(*) AS n_models FROM asked GROUP BY ALL HAVING count(*) > 1)
SELECT
    prompts,
    label AS model,
    role,
    count(*) FILTER (largest >= 0.05) || ' of ' || any_value(n_models) AS seeds_that_use_it,
    avg(largest) AS largest_share,
    list(largest ORDER BY seed, model_id) AS largest_share_values
FROM roles
JOIN counted USING (study, label, prompts)
WHERE study = $study
GROUP BY prompts, label, role, n_layers
HAVING count(*) FILTER (largest >= 0.05) > 0
ORDER BY prompts, n_layers DESC, label, largest_share DESC, role
