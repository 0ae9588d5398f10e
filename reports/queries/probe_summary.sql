-- What heads tell at best, against the stream, means over seeds; the head and place are those of the best seed.
SELECT
    label AS model,
    task,
    count(*) AS seeds,
    max(best_head) FILTER (stands_for_label) AS head,
    avg(head_selectivity) AS selectivity_of_best_head,
    list(head_selectivity ORDER BY labelled_models.seed) AS selectivity_of_best_head_values,
    max(best_stream) FILTER (stands_for_label) AS place_in_stream,
    avg(stream_selectivity) AS selectivity_of_stream,
    list(stream_selectivity ORDER BY labelled_models.seed) AS selectivity_of_stream_values,
    avg(head_accuracy) AS accuracy_of_head,
    list(head_accuracy ORDER BY labelled_models.seed) AS accuracy_of_head_values,
    avg(baseline_accuracy) AS commonest_label,
    list(baseline_accuracy ORDER BY labelled_models.seed) AS commonest_label_values
FROM labelled_models
JOIN probe_summary USING (model_id)
WHERE study = $study
GROUP BY label, labelled_models.n_layers, task
ORDER BY labelled_models.n_layers, label, selectivity_of_best_head DESC NULLS LAST, task
