-- statement: the factored form of heads forces wrong skip-trigrams on them: one or more among the strongest 20
-- source: 002
-- over: models
-- needs: total_heads > 0
-- lacks: models with heads
-- rule: holds if estimate > 0.5
-- unit: share of heads
-- evidence: Skip-trigrams
WITH measured AS (
    SELECT DISTINCT model_id, layer, head FROM heads WHERE ov_rank IS NOT NULL
),
bugs AS (
    SELECT DISTINCT model_id, layer, head, true AS has_bug FROM skip_trigrams WHERE is_bug AND rank < 20
)
SELECT model_id, avg((has_bug IS NOT NULL)::INTEGER) AS value
FROM cells
JOIN measured USING (model_id)
LEFT JOIN bugs USING (model_id, layer, head)
WHERE study = $study
GROUP BY model_id
