-- statement: the QK circuit of the strongest pair that K-composes matches equal tokens (matching eigenvalues)
-- source: 000
-- over: models
-- needs: n_layers = 2 AND total_heads > 1
-- lacks: models of two layers
-- rule: holds if estimate > 0.5
-- evidence: Copying and matching
-- empty: no pair that K-composes was measured
WITH last_pairs AS (
    FROM compositions QUALIFY step = max(step) OVER (PARTITION BY model_id)
),
by_model AS (
    SELECT arg_max(matching_eigenvalues, z) AS matching
    FROM study_models
    JOIN models USING (model_id)
    JOIN last_pairs USING (model_id)
    WHERE study = $study AND n_layers = 2 AND significant AND kind = 'K'
    GROUP BY model_id
)
SELECT
    avg(matching) AS estimate,
    avg(matching) - ci95(matching) AS ci_low,
    avg(matching) + ci95(matching) AS ci_high,
    count(matching) AS n
FROM by_model
