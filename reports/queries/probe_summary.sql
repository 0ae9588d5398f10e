-- What heads tell at best, against the stream, means over seeds; the head and place are those of the best seed.
SELECT
    label AS model,
    task,
    count(*) AS seeds,
    max(best_head) FILTER (stands_for_label) AS head,
    avg(head_selectivity) AS selectivity_of_best_head,
    ci95(head_selectivity) AS selectivity_of_best_head_ci95,
    max(best_stream) FILTER (stands_for_label) AS place_in_stream,
    avg(stream_selectivity) AS selectivity_of_stream,
    ci95(stream_selectivity) AS selectivity_of_stream_ci95,
    avg(head_accuracy) AS accuracy_of_head,
    ci95(head_accuracy) AS accuracy_of_head_ci95,
    avg(baseline_accuracy) AS commonest_label,
    ci95(baseline_accuracy) AS commonest_label_ci95
FROM labelled_models
JOIN probe_summary USING (model_id)
WHERE study = $study
GROUP BY label, labelled_models.n_layers, task
ORDER BY labelled_models.n_layers, label, selectivity_of_best_head DESC NULLS LAST, task
