-- kind: self-check
-- statement: a head moves at most d_head dimensions
-- source: elhage-2021, Attention Heads as Information Movement
-- texts: one-layer
-- needs: total_heads > 0 AND d_value = d_head
-- lacks: models with heads whose d_value is d_head
-- rule: holds if every model <= 0
-- unit: dimensions too many
-- evidence: Room in the stream
-- changed: 2026-11-28, an identity, no longer among findings
SELECT model_id, max(ov_rank - least(d_model, d_head)) AS value
FROM cells
JOIN last_heads USING (model_id)
WHERE study = $study AND d_value = d_head
GROUP BY model_id
