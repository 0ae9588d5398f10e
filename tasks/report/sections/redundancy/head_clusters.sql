-- Which heads attend alike, each next to those most like it; in the model that stands for each label.
SELECT label, layer, head, cluster
FROM labelled_models
JOIN head_clusters USING (model_id)
WHERE study = $study AND stands_for_label
ORDER BY label, leaf, layer, head
