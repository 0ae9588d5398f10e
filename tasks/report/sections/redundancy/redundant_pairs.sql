-- Pairs of heads that stand in for each other, the most costly to lose first; in the model that stands for each label.
SELECT
    label AS model,
    head_label(first_layer, first_head) AS first,
    head_label(second_layer, second_head) AS second,
    jensen_shannon_distance,
    output_cka,
    ov_cosine,
    first_effect_nats AS without_first_nats,
    second_effect_nats AS without_second_nats,
    both_effect_nats AS without_both_nats,
    excess_nats
FROM labelled_models
JOIN head_similarity USING (model_id)
WHERE study = $study AND stands_for_label AND is_redundant
ORDER BY excess_nats DESC, label, first, second
