-- statement: with feed-forward layers, more dimensions are written than the stream has
-- source: 000
-- over: models
-- needs: feed_forward <> 'none' AND total_heads > 0
-- lacks: models with heads and feed-forward layers
-- rule: holds if estimate > 1
-- unit: dimensions written over those there are
-- evidence: Room in the stream
WITH last_heads AS (
    FROM heads QUALIFY step = max(step) OVER (PARTITION BY model_id)
),
by_model AS (
    SELECT (sum(ov_rank) + n_layers * d_mlp) / d_model AS bandwidth
    FROM study_models
    JOIN models USING (model_id)
    JOIN last_heads USING (model_id)
    WHERE study = $study AND feed_forward <> 'none'
    GROUP BY model_id, n_layers, d_mlp, d_model
)
SELECT
    avg(bandwidth) AS estimate,
    avg(bandwidth) - ci95(bandwidth) AS ci_low,
    avg(bandwidth) + ci95(bandwidth) AS ci_high,
    count(bandwidth) AS n
FROM by_model
