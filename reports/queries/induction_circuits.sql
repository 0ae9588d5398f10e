-- The circuit that does induction, or comes nearest to it, in the model that stands for each label with two or more layers.
SELECT
    label,
    is_complete,
    reader,
    reader_role,
    induction_random_period,
    copying_eigenvalues,
    copies,
    writer,
    writer_role,
    previous_token,
    n_earlier,
    k_score,
    k_z,
    k_rank,
    k_significant,
    matching_eigenvalues,
    matches,
    key_share,
    induction_random_period_without,
    depends,
    loss_effect_nats,
    formed_tokens
FROM labelled_models
JOIN induction_circuits USING (model_id)
WHERE study = $study AND stands_for_label AND labelled_models.n_layers >= 2
ORDER BY induction_random_period DESC NULLS LAST, label
