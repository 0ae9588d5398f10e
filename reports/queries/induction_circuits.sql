-- The circuit that does induction, or comes nearest to it, in the model that stands for each label with two or more layers.
SELECT
    labelled_models.label,
    found,
    reader,
    readers.role AS reader_role,
    readers.layer AS reader_layer,
    circuits.induction_random_period,
    copying_eigenvalues,
    writer,
    writers.role AS writer_role,
    circuits.previous_token,
    k_score,
    k_z,
    k_rank,
    k_significant,
    matching_eigenvalues,
    key_share,
    induction_random_period_without,
    loss_effect_nats,
    formed_tokens,
    (SELECT count(*) FROM head_summary AS h WHERE h.model_id = circuits.model_id AND h.layer < readers.layer) AS n_earlier
FROM labelled_models
JOIN induction_circuits AS circuits USING (model_id)
LEFT JOIN head_summary AS readers ON readers.model_id = circuits.model_id AND readers.label = reader
LEFT JOIN head_summary AS writers ON writers.model_id = circuits.model_id AND writers.label = writer
WHERE study = $study AND stands_for_label AND labelled_models.n_layers >= 2
ORDER BY circuits.induction_random_period DESC NULLS LAST, labelled_models.label
