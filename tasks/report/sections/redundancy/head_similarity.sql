-- How alike all pairs of heads are, in the model that stands for each label.
SELECT
    label,
    first_layer,
    first_head,
    second_layer,
    second_head,
    jensen_shannon_distance,
    is_redundant,
    greatest(first_effect_nats, second_effect_nats) / validation_loss_nats AS costlier_share
FROM labelled_models
JOIN head_similarity USING (model_id)
JOIN model_summary USING (model_id)
WHERE study = $study AND stands_for_label
ORDER BY label, first_layer, first_head, second_layer, second_head
