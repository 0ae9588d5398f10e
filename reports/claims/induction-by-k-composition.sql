-- statement: an induction head reads previous-token heads by K-composition: without those in its keys it loses more than half
--   of prefix_matching
-- source: elhage-2021, How Induction Heads Work
-- texts: composition
-- needs: n_layers > 1 AND total_heads > 1
-- lacks: models with heads in two layers
-- stages: activation-circuits
-- rule: holds if estimate > 0.5
-- range: -inf to 1
-- unit: share of prefix_matching lost, models with an induction head
-- evidence: The induction circuit
-- empty: no induction head was measured
-- changed: 2026-11-28, one writer removed alone was not the circuit, now all of them, for each configuration; 2026-11-30, of a
--   share of models 17 seeds were needed to hold even if all agreed, now the mean of what is lost decides (0.5 is the "half
--   or less" of before), 0 for a head that reads no earlier previous-token head by its keys, and writers are named by
--   their effects, not by their weights
SELECT
    model_id,
    cells.seed,
    CASE WHEN n_earlier > 0 AND n_writers > 0 AND kind = 'K' THEN 1 - prefix_matching_without / prefix_matching ELSE 0 END AS value
FROM cells
JOIN induction_circuits USING (model_id)
WHERE study = $study AND is_strongest AND reader_role = 'induction' AND (n_earlier = 0 OR n_writers IS NOT NULL)
