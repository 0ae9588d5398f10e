-- Validation loss of every model at every checkpoint, beside its size and the compute that it took: 6 floating-point operations for each token and each parameter that is multiplied (Kaplan et al. 2020).
SELECT
    label,
    labelled_models.n_layers,
    labelled_models.seed,
    model_id,
    parameters,
    evaluations.tokens,
    6.0 * evaluations.tokens
        * (parameters - if(coalesce(tied_embeddings, false), 0, coalesce(models.vocabulary * d_model, 0)))
        AS training_flops,
    validation_loss_nats,
    step = max(step) OVER (PARTITION BY model_id) AS is_last
FROM labelled_models
JOIN models USING (model_id)
JOIN evaluations USING (model_id)
WHERE study = $study AND validation_loss_nats IS NOT NULL
ORDER BY label, model_id, step
