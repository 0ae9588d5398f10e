-- statement: with smeared keys one layer does induction: its best induction_random_period is over 0.15, and without under 0.05
-- source: olsson-2022, argument 2
-- models: all
-- needs: n_layers = 1 AND EXISTS (
--     SELECT 1 FROM cells AS own WHERE n_layers = 1 AND interventions IS NULL
--     GROUP BY without_axes(cell, 'key_smearing') HAVING count(DISTINCT coalesce(key_smearing, false)) = 2)
-- lacks: models of one layer with and without smeared keys
-- rule: holds if estimate > 0
-- unit: margin over the nearer bar
-- evidence: Interventions
WITH best AS (
    SELECT
        seed,
        without_axes(cell, 'seed|key_smearing') AS configuration,
        max(best_induction_random_period) FILTER (key_smearing) AS smeared,
        max(best_induction_random_period) FILTER (NOT coalesce(key_smearing, false)) AS plain
    FROM cells
    WHERE study = $study AND n_layers = 1 AND interventions IS NULL
    GROUP BY ALL
)
SELECT seed, configuration, least(smeared / 0.15 - 1, 1 - plain / 0.05) AS value
FROM best
WHERE smeared IS NOT NULL AND plain IS NOT NULL
