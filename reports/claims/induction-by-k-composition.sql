-- statement: an induction head K-composes with a previous-token head: of all it could K-compose with, that ranks
--   first, and without it in the keys prefix_matching is half or less
-- source: 000
-- over: models
-- needs: n_layers > 1 AND total_heads > 1
-- lacks: models with heads in two layers
-- rule: holds if estimate > 0.8
-- unit: share of models with an induction head
-- evidence: The induction circuit
-- empty: no induction head was measured
WITH by_model AS (
    SELECT
        CASE
            WHEN writer IS NULL THEN false  -- it has no earlier head to read
            ELSE k_rank = 1 AND prefix_matching_without <= induction_circuits.prefix_matching / 2
        END AS composes
    FROM study_models
    JOIN induction_circuits USING (model_id)
    JOIN head_summary USING (model_id)
    WHERE study = $study AND head_summary.label = reader AND role = 'induction'
),
shares AS (
    SELECT avg(composes::INTEGER) AS share, count(composes) AS n FROM by_model
)
SELECT share AS estimate, share_low(share, n) AS ci_low, share_high(share, n) AS ci_high, n FROM shares
