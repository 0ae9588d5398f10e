-- Pairs of heads as one head, those that change the loss most first; the model that stands for each label.
SELECT
    label AS model,
    head_label(first_layer, first_head) || ' > ' || head_label(second_layer, second_head) AS virtual_head,
    loss_effect_nats,
    logit_share,
    copying_eigenvalues,
    mean_distance
FROM labelled_models
JOIN virtual_heads USING (model_id)
WHERE study = $study AND stands_for_label
ORDER BY abs(loss_effect_nats) DESC NULLS LAST, ov_norm DESC NULLS LAST, label, virtual_head
