-- statement: W_Q, W_K and W_V of a head learn different maps: what they read overlaps about as random spaces do
-- source: 004
-- over: models
-- needs: total_heads > 0 AND d_head < d_model
-- lacks: models whose heads are narrower than d_model
-- rule: holds if estimate between 0.5 and 2
-- unit: times random
-- evidence: Room in the stream
WITH last_heads AS (
    FROM heads QUALIFY step = max(step) OVER (PARTITION BY model_id)
),
by_model AS (
    SELECT
        avg(
            query_key_overlap / d_head
            + (query_value_overlap + key_value_overlap) / greatest(d_head, d_value)
        ) * d_model / 3 AS ratio
    FROM study_models
    JOIN models USING (model_id)
    JOIN last_heads USING (model_id)
    WHERE study = $study AND d_head < d_model
    GROUP BY model_id, d_model
)
SELECT
    avg(ratio) AS estimate,
    avg(ratio) - ci95(ratio) AS ci_low,
    avg(ratio) + ci95(ratio) AS ci_high,
    count(ratio) AS n
FROM by_model
