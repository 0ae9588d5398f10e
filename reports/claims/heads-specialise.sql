-- statement: heads take on different patterns of attention, which come again in other seeds: on average a head attends more like
--   its match in another seed than like the nearest other head of its own layer (Jensen-Shannon distance)
-- source: voita-2019, 5 Characterizing heads
-- texts: multi-head, parallel-heads
-- needs: n_layers > 0 AND n_heads > 1 AND measures($study, 'redundancy')
-- lacks: models of two heads or more a layer that differ in their seed alone, or the stage redundancy
-- rule: holds if estimate > 0
-- range: -1 to 1
-- unit: distance, nearest minus matched
-- evidence: Similar heads
-- changed: 2026-11-28, any training moves patterns apart; now heads are held against those of other seeds, and
--   each configuration is decided from its seeds; a head of another layer attends otherwise whatever training does, so
--   heads are held against those of their own layer, and matched within it
SELECT model_id, avg(nearest_distance - matched_distance) AS value
FROM cells
JOIN head_matches USING (model_id)
WHERE study = $study AND n_heads > 1
GROUP BY model_id
