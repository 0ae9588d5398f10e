-- The circuit that does induction, or the head that comes nearest to it, in the model that stands for each label with two or more layers.
WITH seeds AS (
    SELECT label, count(DISTINCT model_id) AS n_models, count(DISTINCT model_id) FILTER (found) AS n_found
    FROM labelled_models
    JOIN induction_circuits USING (model_id)
    WHERE study = $study
    GROUP BY label
)
SELECT
    label,
    labelled_models.seed,
    n_models,
    n_found,
    is_complete,
    reader,
    reader_role,
    induction_random_period,
    induction_copying_logit,
    copying_eigenvalues,
    copies,
    n_earlier,
    kind,
    writers,
    n_writers,
    writer_attention,
    writer_offsets,
    writer_z,
    score,
    z_rank,
    matching_eigenvalues,
    matches,
    score_share,
    prefix_matching,
    prefix_matching_without,
    prefix_matching_without_each,
    depends,
    loss_effect_nats,
    formed_tokens
FROM labelled_models
JOIN induction_circuits USING (model_id)
JOIN seeds USING (label)
WHERE study = $study AND stands_for_label AND is_strongest AND labelled_models.n_layers >= 2
ORDER BY induction_random_period DESC NULLS LAST, label
