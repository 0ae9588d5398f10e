-- statement: heads take on different roles: their patterns grow apart in training (Jensen-Shannon distance)
-- source: voita-2019, 5 Characterizing heads
-- texts: multi-head, parallel-heads
-- needs: total_heads > 1 AND measures($study, 'redundancy')
-- lacks: models of two heads or more, or the stage redundancy
-- rule: holds if estimate > 0
-- range: -1 to 1
-- unit: distance, trained minus initial
-- evidence: Similar heads
-- changed: 2026-11-28, models of different shapes were pooled; now each configuration is decided from its seeds
SELECT model_id, avg(jensen_shannon_distance - initial_distance) AS value
FROM cells
JOIN head_similarity USING (model_id)
WHERE study = $study
GROUP BY model_id
