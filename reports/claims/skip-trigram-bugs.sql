-- statement: the factored form of heads forces wrong skip-trigrams on them as they learn: the share of heads with
--   one or more among their strongest 20 exceeds that before training by over a quarter
-- source: elhage-2021, Skip-Trigram “Bugs”
-- texts: one-layer
-- needs: total_heads > 0
-- lacks: models with heads
-- rule: holds if estimate > 0.25
-- quantity: share
-- control: the same heads before training
-- unit: share of heads, trained minus untrained
-- evidence: Skip-trigrams
-- changed: 2026-11-28, untrained heads have such bugs too; now the difference from them decides
WITH bugs AS (
    SELECT model_id, step, layer, head, bool_or(is_bug AND rank < 20)::INTEGER AS has_bug
    FROM skip_trigrams
    GROUP BY model_id, step, layer, head
),
measured AS (  -- a head may have no skip-trigram at all
    SELECT model_id, step, layer, head, coalesce(has_bug, 0) AS has_bug
    FROM (FROM heads WHERE ov_rank IS NOT NULL)
    SEMI JOIN skip_trigrams USING (model_id, step)
    LEFT JOIN bugs USING (model_id, step, layer, head)
)
SELECT
    model_id,
    avg(has_bug) FILTER (step > 0) AS value,
    avg(has_bug) FILTER (step = 0) AS control,
    count(has_bug) FILTER (step > 0) AS counted
FROM cells
JOIN measured USING (model_id)
WHERE study = $study
GROUP BY model_id
