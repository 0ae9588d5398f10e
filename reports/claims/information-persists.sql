-- statement: what the first layer writes stays in the stream unless erased: its heads' median persistence is high
-- source: 000
-- over: models
-- needs: n_layers > 1 AND heads_per_layer[1] > 0
-- lacks: models of two layers or more
-- rule: holds if estimate > 0.8
-- unit: share left
-- evidence: Room in the stream
SELECT model_id, median(persistence) AS value
FROM cells
JOIN last_heads USING (model_id)
WHERE study = $study AND n_layers > 1 AND layer = 0
GROUP BY model_id
