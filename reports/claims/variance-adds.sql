-- statement: attention variance improves on weight magnitude alone: the sum of both ranks agrees more with ablation
-- source: parallel-heads, Impacto do Número de Cabeças na Complexidade e Desempenho
-- needs: total_heads >= 8 AND measures($study, 'importance')
-- lacks: models of 8 heads or more, or the stage importance
-- rule: holds if estimate > 0
-- range: -2 to 2
-- unit: difference of rank correlations
-- evidence: Importance
-- changed: 2026-11-28, correlations over three heads say nothing; now models of 8 heads or more
WITH scores AS (
    SELECT
        model_id,
        layer,
        head,
        max(score) FILTER (method = 'weight_norm') AS norm,
        max(score) FILTER (method = 'attention_variance') AS variance,
        max(score) FILTER (method = 'ablation_mean') AS effect
    FROM cells
    JOIN importance USING (model_id)
    WHERE study = $study
    GROUP BY model_id, layer, head
),
ranks AS (  -- equal scores share the mean of their ranks
    SELECT
        model_id,
        rank() OVER (PARTITION BY model_id ORDER BY norm)
        + count(*) OVER (PARTITION BY model_id, norm) / 2 AS norm,
        rank() OVER (PARTITION BY model_id ORDER BY variance)
        + count(*) OVER (PARTITION BY model_id, variance) / 2 AS variance,
        rank() OVER (PARTITION BY model_id ORDER BY effect)
        + count(*) OVER (PARTITION BY model_id, effect) / 2 AS effect
    FROM scores
    WHERE norm IS NOT NULL AND variance IS NOT NULL AND effect IS NOT NULL
),
sums AS (
    SELECT
        model_id,
        norm,
        effect,
        rank() OVER (PARTITION BY model_id ORDER BY norm + variance)
        + count(*) OVER (PARTITION BY model_id, norm + variance) / 2 AS rank_sum
    FROM ranks
)
SELECT model_id, corr(rank_sum, effect) - corr(norm, effect) AS value
FROM sums
GROUP BY model_id
HAVING count(*) >= 8 AND least(count(DISTINCT norm), count(DISTINCT rank_sum), count(DISTINCT effect)) > 1
