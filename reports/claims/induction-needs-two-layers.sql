-- statement: induction heads form with two layers (best induction_random_period > 0.15), never with one (< 0.05)
-- source: 000
-- over: seeds
-- needs: EXISTS (
--     SELECT 1 FROM cells GROUP BY seed HAVING count(DISTINCT n_layers) FILTER (n_layers IN (1, 2)) = 2)
-- lacks: models of one and of two layers
-- rule: holds if estimate > 0
-- unit: margin over the nearer bar
-- evidence: Models
SELECT
    seed,
    max(best_induction_random_period) FILTER (n_layers = 2) AS of_two,
    max(best_induction_random_period) FILTER (n_layers = 1) AS of_one,
    if(of_one IS NOT NULL AND of_two IS NOT NULL, least(of_two / 0.15 - 1, 1 - of_one / 0.05), NULL) AS value
FROM cells
WHERE study = $study
GROUP BY seed
