-- statement: attention that does induction forms with two layers, for some number of heads (best induction_random_period
--   > 0.15, a bar below the 0.2 of the role), with one for none (< 0.05)
-- source: elhage-2021, Induction Heads
-- texts: composition
-- needs: EXISTS (
--     SELECT 1 FROM cells GROUP BY without_axes(cell, 'n_layers|n_heads')
--     HAVING count(DISTINCT n_layers) FILTER (n_layers IN (1, 2)) = 2)
-- lacks: models of one and of two layers
-- rule: holds if estimate > 0
-- unit: margin over the nearer bar
-- evidence: Models
-- changed: 2026-11-28, models of different shapes were pooled; now each configuration is decided from its seeds
WITH best AS (  -- over head counts
    SELECT
        seed,
        without_axes(cell, 'seed|n_layers|n_heads') AS configuration,
        max(best_induction_random_period) FILTER (n_layers = 2) AS of_two,
        max(best_induction_random_period) FILTER (n_layers = 1) AS of_one
    FROM cells
    WHERE study = $study
    GROUP BY ALL
)
SELECT seed, configuration, least(of_two / 0.15 - 1, 1 - of_one / 0.05) AS value
FROM best
WHERE of_one IS NOT NULL AND of_two IS NOT NULL
