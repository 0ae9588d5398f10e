-- Every kind of model, the best induction first, but imported ones of which nothing below was measured.
SELECT
    label AS model,
    n_models AS seeds,
    typical_seed AS shown_seed,
    validation_loss_nats_mean AS validation_loss_nats,
    validation_loss_nats_ci95,
    validation_loss_nats_values,
    repeat_gain_nats_mean AS repeat_gain_nats,
    repeat_gain_nats_ci95,
    repeat_gain_nats_values,
    best_induction_random_period_mean AS induction_random_period,
    best_induction_random_period_values AS induction_random_period_values,
    if(n_layers = 0, 'no heads', NULL) AS induction_random_period_note,
    n_with_induction_head || ' of ' || n_models AS have_induction_head,
    if(n_layers = 0, 'no heads', NULL) AS have_induction_head_note,
    formed_from_tokens,
    CASE
        WHEN n_layers = 0 THEN 'no heads'
        WHEN n_formed IS NULL AND n_unresolved > 0 THEN 'can''t be told'
        WHEN n_formed = 0 THEN 'no abrupt rise'
    END AS formed_from_tokens_note,
    formed_by_tokens,
    formed_from_tokens_note AS formed_by_tokens_note,
    best_previous_token_layer_0_mean AS previous_token_layer_0,
    best_previous_token_layer_0_values AS previous_token_layer_0_values,
    if(n_layers = 0, 'no heads', NULL) AS previous_token_layer_0_note
FROM model_groups
JOIN (SELECT model_id AS typical_model_id, imported_as FROM models) USING (typical_model_id)
WHERE study = $study
    AND (
        imported_as IS NULL
        OR coalesce(validation_loss_nats_mean, repeat_gain_nats_mean, best_induction_random_period_mean) IS NOT NULL
    )
ORDER BY place
