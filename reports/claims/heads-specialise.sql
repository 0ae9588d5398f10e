-- statement: heads take on different roles: their patterns grow apart in training (Jensen-Shannon distance)
-- source: 001, 003
-- over: models
-- needs: total_heads > 1 AND measures($study, 'redundancy')
-- lacks: models of two heads or more, or the stage redundancy
-- rule: holds if estimate > 0
-- unit: distance, trained minus initial
-- evidence: Similar heads
WITH by_model AS (
    SELECT avg(jensen_shannon_distance - initial_distance) AS growth
    FROM study_models
    JOIN head_similarity USING (model_id)
    WHERE study = $study
    GROUP BY model_id
)
SELECT
    avg(growth) AS estimate,
    avg(growth) - ci95(growth) AS ci_low,
    avg(growth) + ci95(growth) AS ci_high,
    count(growth) AS n
FROM by_model
