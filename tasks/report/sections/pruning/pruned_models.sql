-- Models with heads physically removed, over the intact model; of the model that stands for each label.
SELECT
    label AS model,
    procedure,
    order_method AS scored_by,
    chosen_as,
    coalesce(list_sum(pruned_models.heads_per_layer), 0) || ' of ' || total_heads AS heads_left,
    pruned_models.parameters / intact_parameters AS parameters,
    checkpoint_bytes / intact_checkpoint_bytes AS file_size,
    seconds_batch_1 / intact_seconds_batch_1 AS time_batch_1,
    seconds_batch_32 / intact_seconds_batch_32 AS time_batch_32,
    loss_nats,
    loss_nats / intact_loss_nats - 1 AS relative_increase
FROM labelled_models
JOIN pruned_models USING (model_id)
JOIN models USING (model_id)
WHERE study = $study AND stands_for_label
ORDER BY total_heads DESC, label, procedure, order_method, n_pruned, chosen_as
