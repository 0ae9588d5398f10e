-- What the mean in a head's place does, the worst first; in the model that stands for each label.
WITH effects AS (
    SELECT
        model_id,
        layer,
        head,
        max(loss_effect_nats) FILTER (ablated = 'head' AND scope = 'full') AS loss_effect_nats,
        max(kl_nats) FILTER (ablated = 'head' AND scope = 'full') AS kl_nats,
        max(loss_effect_nats) FILTER (ablated = 'head' AND scope = 'frozen_patterns') AS patterns_held_nats,
        max(loss_effect_nats) FILTER (ablated = 'others' AND scope = 'full') AS alone_in_its_layer_nats
    FROM ablations
    WHERE method = 'mean'
    GROUP BY model_id, layer, head
)
SELECT
    label AS model,
    head_label(layer, head) AS head,
    loss_effect_nats,
    kl_nats,
    patterns_held_nats,
    alone_in_its_layer_nats
FROM labelled_models
JOIN effects USING (model_id)
WHERE study = $study AND stands_for_label
ORDER BY loss_effect_nats DESC NULLS LAST, label, layer, effects.head
