-- What a linear probe reads from every head and place in the stream, in the model that stands for each label, and
-- whether the place was chosen as the best of its kind, on other documents.
SELECT
    label, task, site, layer, head, accuracy, probes.majority_accuracy, probes.type_accuracy, control_accuracy,
    selectivity, gain, gain_low, gain_high, site IN (best_head, best_stream) AS is_best
FROM labelled_models
JOIN probes USING (model_id)
LEFT JOIN probe_summary USING (model_id, task)
WHERE study = $study AND stands_for_label
ORDER BY label, task, head IS NULL, layer, head
