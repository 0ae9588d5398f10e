-- How alike all pairs of heads are, in the model that stands for each label.
SELECT
    label,
    first_layer,
    first_head,
    second_layer,
    second_head,
    jensen_shannon_distance,
    is_redundant
FROM labelled_models
JOIN head_similarity USING (model_id)
WHERE study = $study AND stands_for_label
ORDER BY label, first_layer, first_head, second_layer, second_head
