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
    induction_circuits.induction_random_period,
    induction_circuits.induction_copying_logit,
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
    also_compose,
    also_compose_attention,
    also_compose_without,
    matching_eigenvalues,
    matches,
    score_share,
    prefix_matching,
    prefix_matching_without,
    prefix_matching_without_each,
    depends,
    reader_role IN ('induction', 'anti-induction') AND coalesce(depends, false) AS is_circuit,
    loss_effect_nats,
    carriers,
    is_carried,
    carried_copying_eigenvalues,
    copying_logit_without_carriers,
    virtual_head,
    virtual_induction.induction_random_period AS virtual_induction_random_period,
    virtual_induction.induction_copying_logit AS virtual_copying_logit,
    repeat_gain_nats,
    repeat_gain_nats >= clear_repeat_gain() AND clearly_positive(repeat_gain_nats, repeat_gain_sem_nats) AS predicts_repeats,
    formed_tokens
FROM labelled_models
JOIN induction_circuits USING (model_id)
JOIN seeds USING (label)
LEFT JOIN (FROM virtual_induction WHERE rank = 1) AS virtual_induction USING (model_id)
LEFT JOIN (FROM evaluations QUALIFY step = max(step) OVER (PARTITION BY model_id)) AS evaluations USING (model_id)
WHERE study = $study AND stands_for_label AND is_strongest AND labelled_models.n_layers >= 2
ORDER BY induction_circuits.induction_random_period DESC NULLS LAST, label
