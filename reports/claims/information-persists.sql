-- statement: what the first layer writes stays in the stream unless erased: its heads' median persistence is high
-- source: 000
-- over: models
-- needs: n_layers > 1 AND heads_per_layer[1] > 0
-- lacks: models of two layers or more
-- rule: holds if estimate > 0.8
-- unit: share left
-- evidence: Room in the stream
WITH last_heads AS (
    FROM heads QUALIFY step = max(step) OVER (PARTITION BY model_id)
),
by_model AS (
    SELECT model_id, median(persistence) AS persistence
    FROM study_models
    JOIN models USING (model_id)
    JOIN last_heads USING (model_id)
    WHERE study = $study AND n_layers > 1 AND layer = 0
    GROUP BY model_id
)
SELECT
    avg(persistence) AS estimate,
    avg(persistence) - ci95(persistence) AS ci_low,
    avg(persistence) + ci95(persistence) AS ci_high,
    count(persistence) AS n
FROM by_model
