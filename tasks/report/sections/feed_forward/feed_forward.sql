-- What the loss owes to feed-forward layers and to the group of neurons that matters most, in the model that stands for each label.
WITH effects AS (
    SELECT label, feed_forward_ablations.*
    FROM labelled_models
    JOIN feed_forward_ablations USING (model_id)
    WHERE study = $study AND stands_for_label AND method = 'mean'
),
by_zero AS (
    SELECT model_id, layer, loss_effect_nats AS zero_effect_nats
    FROM feed_forward_ablations
    WHERE method = 'zero' AND part = 'all'
),
groups AS (
    SELECT *, count(*) OVER (PARTITION BY model_id, layer) AS n_groups
    FROM effects
    WHERE part <> 'all'
    QUALIFY row_number() OVER (PARTITION BY model_id, layer ORDER BY loss_effect_nats DESC NULLS LAST, first_neuron) = 1
)
SELECT
    effects.label AS model,
    layer,
    effects.loss_effect_nats AS effect_nats,
    effects.ci_low_nats,
    effects.ci_high_nats,
    zero_effect_nats,
    effects.kl_nats,
    effects.share_of_loss,
    format('{} to {}, of {} groups', groups.first_neuron, groups.first_neuron + groups.n_neurons - 1, n_groups) AS strongest_neurons,
    groups.loss_effect_nats AS their_effect_nats
FROM effects
LEFT JOIN by_zero USING (model_id, layer)
LEFT JOIN groups USING (model_id, layer)
WHERE effects.part = 'all'
ORDER BY model, layer
