-- Every trained model, the best induction first.
SELECT
    labelled_models.model_id,
    seed,
    parameters,
    models.tokens,
    final_train_loss_nats AS train_loss_nats,
    validation_loss_nats,
    repeat_gain_nats,
    best_induction_random_period,
    best_induction_head,
    best_previous_token,
    best_previous_token_head,
    models.seconds,
    models.tokens_per_second,
    device,
    precision,
    threads
FROM labelled_models
JOIN models USING (model_id, seed)
JOIN model_summary USING (model_id, seed, parameters)
WHERE study = $study
ORDER BY best_induction_random_period DESC NULLS LAST, validation_loss_nats NULLS LAST, model_id
