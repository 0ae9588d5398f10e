-- statement: heads take on different roles: their patterns grow apart in training (Jensen-Shannon distance)
-- source: 001, 003
-- over: models
-- needs: total_heads > 1 AND measures($study, 'redundancy')
-- lacks: models of two heads or more, or the stage redundancy
-- rule: holds if estimate > 0
-- unit: distance, trained minus initial
-- evidence: Similar heads
SELECT model_id, avg(jensen_shannon_distance - initial_distance) AS value
FROM cells
JOIN head_similarity USING (model_id)
WHERE study = $study
GROUP BY model_id
