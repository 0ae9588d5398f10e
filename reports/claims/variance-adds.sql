-- statement: beyond weight magnitude, attention variance tells what ablation costs: their partial rank correlation,
--   weight magnitude held fixed, is positive
-- source: parallel-heads, Impacto do Número de Cabeças na Complexidade e Desempenho
-- needs: total_heads >= 16 AND measures($study, 'importance')
-- lacks: models of 16 heads or more, or the stage importance
-- rule: holds if estimate > 0
-- range: -1 to 1
-- unit: partial rank correlation
-- evidence: Importance
-- changed: 2026-11-28, correlations over three heads say nothing; now models of 8 heads or more; the sum of
--   both ranks is worse than the better rank alone where variance is noise (it "failed" in 11 to 33 %), so now the partial
--   correlation decides; 2026-11-30, over 8 heads a correlation scatters by 0.4, now models of 16 or more
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
)
SELECT
    model_id,
    (corr(variance, effect) - corr(norm, variance) * corr(norm, effect))
    / sqrt((1 - corr(norm, variance) ** 2) * (1 - corr(norm, effect) ** 2)) AS value
FROM ranks
GROUP BY model_id
HAVING
    count(*) >= 16
    AND least(count(DISTINCT norm), count(DISTINCT variance), count(DISTINCT effect)) > 1
    AND greatest(abs(corr(norm, variance)), abs(corr(norm, effect))) < 1
