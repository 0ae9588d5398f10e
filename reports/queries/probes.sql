-- What a linear probe reads from every head and place in the stream, in the model that stands for each label.
SELECT label, task, site, layer, head, accuracy, baseline_accuracy, selectivity
FROM labelled_models
JOIN probes USING (model_id)
WHERE study = $study AND stands_for_label
ORDER BY label, task, head IS NULL, layer, head
