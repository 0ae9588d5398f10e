-- statement: an induction head reads previous-token heads by K-composition: of the heads with which it K-composes
--   significantly the strongest is one, and without all of those in its keys prefix_matching is half or less
-- source: elhage-2021, How Induction Heads Work
-- texts: composition
-- needs: n_layers > 1 AND total_heads > 1
-- lacks: models with heads in two layers
-- rule: holds if estimate > 0.8
-- quantity: share
-- unit: share of models with an induction head
-- evidence: The induction circuit
-- empty: no induction head was measured
-- changed: 2026-11-28, one writer removed alone was not the circuit; now all of them, for each configuration
SELECT
    model_id,
    cells.seed,
    CASE
        WHEN n_earlier = 0 OR n_writers = 0 THEN false  -- it reads no earlier previous-token head
        ELSE kind = 'K' AND z_rank = 1 AND depends
    END AS value
FROM cells
JOIN induction_circuits USING (model_id)
WHERE study = $study AND is_strongest AND reader_role = 'induction'
