-- statement: most heads of one-layer models spend their capacity on copying (copying_eigenvalues > 0.5)
-- source: 002
-- over: models
-- needs: n_layers = 1
-- lacks: models of one layer
-- rule: holds if estimate > 0.5
-- unit: share of heads
-- evidence: Copying and matching
WITH last_heads AS (
    FROM heads QUALIFY step = max(step) OVER (PARTITION BY model_id)
),
by_model AS (
    SELECT model_id, avg((copying_eigenvalues > 0.5)::INTEGER) AS copying
    FROM study_models
    JOIN models USING (model_id)
    JOIN last_heads USING (model_id)
    WHERE study = $study AND n_layers = 1
    GROUP BY model_id
)
SELECT
    avg(copying) AS estimate,
    avg(copying) - ci95(copying) AS ci_low,
    avg(copying) + ci95(copying) AS ci_high,
    count(copying) AS n
FROM by_model
