-- Which scores of importance agree with what ablation finds? One row a model and method: the rank correlation of its
-- scores with those of ablation_mean, over the heads that have both.
--
-- model_id: models.model_id
-- name: the model's short name, like 2L4H
-- studies: the studies that the model belongs to
-- seed: of weights and batches
-- n_layers: layers of the model
-- method: importance.method
-- n_heads: heads that have both scores
-- spearman: Spearman's rank correlation, -1..1, equal scores sharing the mean of their ranks; NULL below 3 heads, or if all of a method's scores are equal
WITH memberships AS (
    SELECT model_id, list(study ORDER BY study) AS studies FROM study_models GROUP BY model_id
),
scores AS (
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
SELECT model_id, name, studies, seed, n_layers, method, correlations.n_heads, spearman
FROM correlations
LEFT JOIN models USING (model_id)
LEFT JOIN memberships USING (model_id)
ORDER BY name, seed, model_id, method
