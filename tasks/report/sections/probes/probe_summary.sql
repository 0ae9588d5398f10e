-- What the best heads tell beside the best places in the stream, means over seeds; the head, the place and the intervals
-- are those of the model that stands for its label.
SELECT
    label AS model,
    task,
    count(*) AS seeds,
    max(best_head) FILTER (stands_for_label) AS head,
    max(format('{:.2f} ({:.2f} to {:.2f})', round(head_gain, 2) + 0, round(head_gain_low, 2) + 0, round(head_gain_high, 2) + 0))
        FILTER (stands_for_label) AS its_gain_over_text,
    avg(head_gain) AS gain_of_head,
    ci95(head_gain) AS gain_of_head_ci95,
    list(head_gain ORDER BY labelled_models.seed) AS gain_of_head_values,
    avg(head_accuracy) AS accuracy_of_head,
    list(head_accuracy ORDER BY labelled_models.seed) AS accuracy_of_head_values,
    avg(majority_accuracy) AS commonest_label,
    avg(type_accuracy) AS commonest_of_the_token,
    avg(head_control_accuracy) AS on_random_labels,
    list(head_control_accuracy ORDER BY labelled_models.seed) AS on_random_labels_values,
    max(best_stream) FILTER (stands_for_label) AS place_in_stream,
    avg(stream_gain) AS gain_of_stream,
    list(stream_gain ORDER BY labelled_models.seed) AS gain_of_stream_values
FROM labelled_models
JOIN probe_summary USING (model_id)
WHERE study = $study AND best_head IS NOT NULL
GROUP BY label, labelled_models.n_layers, task
ORDER BY labelled_models.n_layers, label, gain_of_head DESC NULLS LAST, task
