-- statement: Q- and K-composition decide where heads of the second layer look: on average, over 0.1 of the variance of their
--   attention scores is composed
-- source: elhage-2021, Three Kinds of Composition
-- texts: composition
-- needs: n_layers > 1 AND total_heads > 1
-- lacks: models with heads in two layers
-- rule: holds if estimate > 0.1
-- unit: share of score variance
-- evidence: What attention scores are made of
-- changed: 2026-11-28, models of different shapes were pooled; now each configuration is decided from its seeds; that
--   V-composition changes no pattern is an identity
WITH shares AS (
    SELECT model_id, head, sum(share) FILTER (composition IN ('Q', 'K', 'QK')) AS composed
    FROM score_terms
    WHERE layer = 1
    GROUP BY model_id, head
)
SELECT model_id, avg(composed) AS value
FROM cells
JOIN shares USING (model_id)
WHERE study = $study
GROUP BY model_id
