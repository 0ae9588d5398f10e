-- One row a head of each model's last checkpoint: its main scores and, in plain words, its role.
--
-- model_id: models.model_id
-- name: the model's short name, like 2L4H
-- studies: the studies that the model belongs to
-- seed: of weights and batches
-- n_layers: layers of the model
-- step: optimiser steps taken at the checkpoint
-- layer: counted from 0
-- head: counted from 0 within its layer
-- label: the head as people write it, like L1H3
-- role: induction, previous token, duplicate token, positional or BOS, the first whose score reaches its threshold in data/views/head_summary.sql; other if none does; NULL without any score
-- induction_random_period: heads.induction_random_period
-- previous_token: heads.previous_token
-- duplicate_token: heads.duplicate_token
-- bos_attention: heads.bos_attention
-- prefix_matching: heads.prefix_matching
-- induction_natural: heads.induction_natural
-- positional_offset: heads.positional_offset_without_bos, positions
-- positional_share: heads.positional_share_without_bos
-- entropy: heads.entropy_without_bos
-- mean_distance: heads.mean_distance_without_bos, positions
-- confidence: heads.confidence_without_bos
WITH last_checkpoints AS (
    FROM heads QUALIFY step = max(step) OVER (PARTITION BY model_id)
),
memberships AS (
    SELECT model_id, list(study ORDER BY study) AS studies FROM study_models GROUP BY model_id
)
SELECT
    model_id,
    name,
    studies,
    seed,
    n_layers,
    step,
    layer,
    head,
    'L' || layer || 'H' || head AS label,
    CASE
        WHEN induction_random_period >= 0.2 THEN 'induction'
        WHEN previous_token >= 0.4 THEN 'previous token'
        WHEN duplicate_token >= 0.3 THEN 'duplicate token'
        WHEN positional_share_without_bos >= 0.9 THEN 'positional'
        WHEN bos_attention >= 0.5 THEN 'BOS'
        WHEN coalesce(
            induction_random_period, previous_token, duplicate_token, positional_share_without_bos, bos_attention
        ) IS NOT NULL THEN 'other'
    END AS role,
    induction_random_period,
    previous_token,
    duplicate_token,
    bos_attention,
    prefix_matching,
    induction_natural,
    positional_offset_without_bos AS positional_offset,
    positional_share_without_bos AS positional_share,
    entropy_without_bos AS entropy,
    mean_distance_without_bos AS mean_distance,
    confidence_without_bos AS confidence
FROM last_checkpoints
LEFT JOIN models USING (model_id)
LEFT JOIN memberships USING (model_id)
ORDER BY name, seed, model_id, layer, head
