-- Models of the explorer, those that stand for the best kinds first, and how each turned out.
SELECT
    labelled_models.model_id,
    labelled_models.label,
    labelled_models.seed,
    labelled_models.cell,
    labelled_models.stands_for_label,
    model_groups.place,
    models.n_layers,
    models.heads_per_layer,
    models.n_key_value_heads,
    models.parameters,
    models.d_model,
    models.n_ctx,
    models.vocabulary,
    models.tokens,
    model_summary.validation_loss_nats,
    model_summary.repeat_gain_nats,
    model_summary.learned
FROM labelled_models
JOIN models USING (model_id)
JOIN model_summary USING (model_id)
JOIN model_groups USING (study, label)
WHERE study = $study
ORDER BY NOT labelled_models.stands_for_label, model_groups.place, labelled_models.seed, labelled_models.model_id
