-- statement: training makes heads of the second layer attend by what earlier heads wrote: the share of the variance of their
--   attention scores that is Q- or K-composed exceeds that before training by over 0.1
-- source: elhage-2021, Three Kinds of Composition
-- texts: composition
-- needs: n_layers > 1 AND total_heads > 1 AND feed_forward = 'none'
-- lacks: models with heads in two layers and no feed-forward layers, whose writing is told apart from that of heads
-- rule: holds if estimate > 0.1
-- control: the same heads before training
-- unit: share of score variance, trained minus untrained
-- evidence: What attention scores are made of
-- changed: 2026-11-28, models of different shapes were pooled; now each configuration is decided from its seeds; that
--   V-composition changes no pattern is an identity; random weights met the bar under norms (0.97) and in many heads, so
--   now the difference from them decides; with feed-forward layers it failed by definition, as what reads them is counted
--   apart; a share of variance isn't what decides where heads look
WITH shares AS (
    SELECT model_id, step, head, sum(share) FILTER (composition IN ('Q', 'K', 'QK')) AS composed
    FROM score_terms
    WHERE layer = 1
    GROUP BY model_id, step, head
)
SELECT
    model_id,
    avg(composed) FILTER (step > 0) AS value,
    avg(composed) FILTER (step = 0) AS control
FROM cells
JOIN shares USING (model_id)
WHERE study = $study
GROUP BY model_id
