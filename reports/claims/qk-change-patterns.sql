-- statement: Q- and K-composition change where heads of the second layer look (over 0.1 of their scores' variance);
--   V-composition doesn't: without a writer in their values alone, patterns stay as they are
-- source: 000
-- over: models
-- needs: n_layers > 1 AND total_heads > 1
-- lacks: models with heads in two layers
-- rule: holds if estimate > 0
-- unit: margin over the bar
-- evidence: What attention scores are made of
WITH shares AS (
    SELECT model_id, head, sum(share) FILTER (composition IN ('Q', 'K', 'QK')) AS composed
    FROM score_terms
    WHERE layer = 1
    GROUP BY model_id, head
),
by_share AS (
    SELECT model_id, avg(composed) AS composed FROM shares GROUP BY model_id
),
by_values AS (
    SELECT model_id, max(pattern_change) AS change
    FROM causal_checks
    WHERE kind = 'V' AND reader_layer = 1
    GROUP BY model_id
)
SELECT model_id, if(change > 0, least(composed / 0.1 - 1, -change), composed / 0.1 - 1) AS value
FROM cells
JOIN by_share USING (model_id)
JOIN by_values USING (model_id)
WHERE study = $study AND composed IS NOT NULL AND change IS NOT NULL
