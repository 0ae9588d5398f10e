-- statement: with feed-forward layers, more dimensions are written than the stream has
-- source: 000
-- over: models
-- needs: feed_forward <> 'none' AND total_heads > 0
-- lacks: models with heads and feed-forward layers
-- rule: holds if estimate > 1
-- unit: dimensions written over those there are
-- evidence: Room in the stream
SELECT model_id, (sum(ov_rank) + n_layers * d_mlp) / d_model AS value
FROM cells
JOIN last_heads USING (model_id)
WHERE study = $study AND feed_forward <> 'none'
GROUP BY model_id, n_layers, d_mlp, d_model
