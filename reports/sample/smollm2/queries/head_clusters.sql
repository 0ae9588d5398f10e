SELECT label, layer, head, cluster
FROM labelled_models
JOIN head_clusters USING (model_id)
WHERE study = 'smollm2' AND stands_for_label
ORDER BY label, leaf, layer, head
