SELECT
    labelled_models.label,
    head_summary.label AS head_label,
    layer,
    head,
    role,
    induction_random_period,
    induction_natural,
    prefix_matching,
    previous_token,
    duplicate_token,
    positional_share,
    bos_attention,
    entropy
FROM labelled_models
JOIN head_summary USING (model_id)
WHERE study = 'smollm2' AND stands_for_label
ORDER BY labelled_models.label, layer, head
