-- kind: self-check
-- statement: with feed-forward layers, more dimensions are written than the stream has
-- source: elhage-2021, Subspaces and Residual Stream Bandwidth
-- texts: composition
-- needs: feed_forward <> 'none' AND total_heads > 0
-- lacks: models with heads and feed-forward layers
-- rule: holds if every model < 1
-- unit: dimensions there are over those written
-- evidence: Room in the stream
-- changed: 2026-11-28, arithmetic of sizes, no longer among findings
SELECT model_id, d_model / (sum(ov_rank) + n_layers * d_mlp) AS value
FROM cells
JOIN last_heads USING (model_id)
WHERE study = $study AND feed_forward <> 'none'
GROUP BY model_id, n_layers, d_mlp, d_model
