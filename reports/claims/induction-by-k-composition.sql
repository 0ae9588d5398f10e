-- statement: an induction head K-composes with a previous-token head: of all heads with which it could, that one
--   ranks first, and without it in the keys prefix_matching is at most half
-- source: 000
-- over: models
-- needs: n_layers > 1 AND total_heads > 1
-- lacks: models with heads in two layers
-- rule: holds if estimate > 0.8
-- unit: share of models with an induction head
-- evidence: The induction circuit
-- empty: no induction head was measured
SELECT
    model_id,
    CASE
        WHEN writer IS NULL THEN false  -- it has no earlier head to read
        ELSE k_rank = 1 AND prefix_matching_without <= prefix_matching / 2
    END AS value
FROM cells
JOIN induction_circuits USING (model_id)
WHERE study = $study AND reader_role = 'induction'
