-- One row a head of each model's last checkpoint: its main scores and, in plain words, its role.
--
-- named_models.*
-- head_roles.*
-- shares_keys_with: other heads of its layer that have the same keys and values, like [L1H2]; NULL if each head has its own
-- positional_offset: heads.positional_offset_without_bos, positions
-- positional_share: heads.positional_share_without_bos
-- entropy: heads.entropy_without_bos
-- mean_distance: heads.mean_distance_without_bos, positions
-- confidence: heads.confidence_without_bos
WITH sharing AS (
    SELECT model_id, n_key_value_heads, heads_per_layer, layer, heads_per_layer[layer + 1] // n_key_value_heads AS group_size
    FROM (SELECT *, unnest(range(n_layers))::INTEGER AS layer FROM models)
)
SELECT
    model_id,
    named_models.* EXCLUDE (model_id),
    step,
    layer,
    head,
    label,
    if(
        n_key_value_heads < heads_per_layer[layer + 1],
        list_transform(
            list_filter(
                range(heads_per_layer[layer + 1]),
                lambda other: other <> head AND other // group_size = head // group_size
            ),
            lambda other: head_label(layer, other)
        ),
        NULL
    ) AS shares_keys_with,
    role,
    induction_random_period,
    induction_copying_logit,
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
FROM head_roles
LEFT JOIN named_models USING (model_id)
LEFT JOIN sharing USING (model_id, layer)
ORDER BY name, seed, model_id, layer, head
