-- statement: W_Q, W_K and W_V of a head learn different maps: what they read overlaps about as random spaces do
-- source: 004
-- over: models
-- needs: total_heads > 0 AND d_head < d_model
-- lacks: models whose heads are narrower than d_model
-- rule: holds if estimate between 0.5 and 2
-- unit: times random
-- evidence: Room in the stream
SELECT
    model_id,
    avg(
        query_key_overlap / d_head
        + (query_value_overlap + key_value_overlap) / greatest(d_head, d_value)
    ) * d_model / 3 AS value
FROM cells
JOIN last_heads USING (model_id)
WHERE study = $study AND d_head < d_model
GROUP BY model_id, d_model
