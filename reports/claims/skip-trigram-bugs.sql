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
    SELECT model_id, layer, head, count(*) AS n_bugs FROM skip_trigrams WHERE is_bug AND rank < 20 GROUP BY ALL
),
by_model AS (
    SELECT model_id, avg((n_bugs IS NOT NULL)::INTEGER) AS with_bugs
    FROM study_models
    JOIN measured USING (model_id)
    LEFT JOIN bugs USING (model_id, layer, head)
    WHERE study = $study
    GROUP BY model_id
)
SELECT
    avg(with_bugs) AS estimate,
    avg(with_bugs) - ci95(with_bugs) AS ci_low,
    avg(with_bugs) + ci95(with_bugs) AS ci_high,
    count(with_bugs) AS n
FROM by_model
