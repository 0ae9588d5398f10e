-- statement: a head moves at most d_head dimensions
-- source: 002
-- over: models
-- needs: total_heads > 0 AND d_value = d_head
-- lacks: models with heads whose d_value is d_head
-- rule: holds if every model <= 0
-- unit: dimensions too many
-- evidence: Room in the stream
WITH last_heads AS (
    FROM heads QUALIFY step = max(step) OVER (PARTITION BY model_id)
)
SELECT
    max(ov_rank - least(d_model, d_head)) AS estimate,
    NULL AS ci_low,
    NULL AS ci_high,
    count(DISTINCT model_id) AS n
FROM study_models
JOIN models USING (model_id)
JOIN last_heads USING (model_id)
WHERE study = $study AND d_value = d_head AND ov_rank IS NOT NULL
