-- How every model turned out, the best induction first, but imported ones of which nothing below was measured.
SELECT
    coalesce(models.imported_as, model_id) AS model,
    train_loss_nats,
    validation_loss_nats,
    in_context_learning_nats,
    repeat_gain_nats,
    best_induction_random_period AS induction_random_period,
    if(models.n_layers = 0, 'no heads', NULL) AS induction_random_period_note,
    best_induction_head AS head,
    if(models.n_layers = 0, 'no heads', NULL) AS head_note,
    best_previous_token AS previous_token,
    if(models.n_layers = 0, 'no heads', NULL) AS previous_token_note,
    best_previous_token_head AS that_head,
    if(models.n_layers = 0, 'no heads', NULL) AS that_head_note
FROM study_models
JOIN models USING (model_id)
JOIN model_summary USING (model_id)
LEFT JOIN (FROM evaluations SELECT model_id, train_loss_nats WHERE train_loss_nats IS NOT NULL) USING (model_id)
WHERE study = $study
    AND (
        models.imported_as IS NULL
        OR coalesce(validation_loss_nats, repeat_gain_nats, best_induction_random_period) IS NOT NULL
    )
ORDER BY induction_random_period DESC NULLS LAST, validation_loss_nats NULLS LAST, model_id
