-- How many pairs of heads are redundant, over seeds; the nearest pair is that of the model that stands for the label.
SELECT
    label AS model,
    count(n_redundant) AS seeds,
    sum(n_redundant)::INTEGER || ' of ' || sum(n_tried)::INTEGER AS redundant_pairs,
    if(sum(n_tried) = 0, 'none tried', NULL) AS redundant_pairs_note,
    sum(n_initially_redundant)::INTEGER || ' of ' || sum(n_tried)::INTEGER AS before_training,
    if(sum(n_tried) = 0, 'none tried', NULL) AS before_training_note,
    avg(fraction_redundant) AS fraction_redundant,
    list(fraction_redundant ORDER BY labelled_models.seed) AS fraction_redundant_values,
    if(sum(n_tried) = 0, 'none tried', NULL) AS fraction_redundant_note,
    max(nearest_pair) FILTER (stands_for_label) AS nearest_pair,
    max(nearest_distance) FILTER (stands_for_label) AS their_distance
FROM labelled_models
JOIN redundant_pairs USING (model_id)
WHERE study = $study
GROUP BY label, labelled_models.n_layers
ORDER BY labelled_models.n_layers, label
