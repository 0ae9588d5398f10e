-- By how much the loss rises without each head, later layers seeing it; in the model that stands for each label.
SELECT
    label,
    head_label(layer, head) AS head_label,
    layer,
    head,
    method,
    loss_effect_nats,
    ci_low_nats,
    ci_high_nats
FROM labelled_models
JOIN ablations USING (model_id)
WHERE study = $study AND stands_for_label AND ablated = 'head' AND scope = 'full'
ORDER BY label, layer, head, method
