-- Which scores of importance agree with what ablation finds? One row a model and method: the rank correlation of its
-- scores with those of ablation_mean, over the heads that have both.
--
-- named_models.*
-- method: importance.method
-- n_heads: heads that have both scores
-- spearman: Spearman's rank correlation, -1..1, equal scores sharing the mean of their ranks; NULL below 3 heads, or if all of a method's scores are equal
WITH scores AS (
    SELECT model_id, scored.method, scored.score, ablated.score AS effect
    FROM importance AS scored
    JOIN importance AS ablated USING (model_id, layer, head)
    WHERE ablated.method = 'ablation_mean' AND scored.score IS NOT NULL AND ablated.score IS NOT NULL
),
ranks AS (
    SELECT
        model_id,
        method,
        rank() OVER (PARTITION BY model_id, method ORDER BY score)
        + count(*) OVER (PARTITION BY model_id, method, score) / 2 AS score_rank,
        rank() OVER (PARTITION BY model_id, method ORDER BY effect)
        + count(*) OVER (PARTITION BY model_id, method, effect) / 2 AS effect_rank
    FROM scores
),
correlations AS (
    SELECT
        model_id,
        method,
        count(*) AS n_heads,
        if(
            count(DISTINCT score_rank) > 1 AND count(DISTINCT effect_rank) > 1 AND n_heads >= 3,
            corr(score_rank, effect_rank),
            NULL
        ) AS spearman
    FROM ranks
    GROUP BY model_id, method
)
SELECT model_id, named_models.* EXCLUDE (model_id), method, n_heads, spearman
FROM correlations
LEFT JOIN named_models USING (model_id)
ORDER BY name, seed, model_id, method
