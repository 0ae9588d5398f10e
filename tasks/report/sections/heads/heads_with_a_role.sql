-- Heads whose main score reaches the threshold of a role, in the model that stands for each label.
SELECT
    labelled_models.label AS model,
    head_summary.label AS head,
    role,
    induction_random_period,
    induction_copying_logit,
    previous_token,
    duplicate_token,
    positional_share AS at_one_offset,
    positional_offset AS that_offset,
    bos_attention
FROM labelled_models
JOIN head_summary USING (model_id)
WHERE study = $study AND stands_for_label AND role <> 'other'
ORDER BY
    list_position(['induction', 'anti-induction', 'previous token', 'duplicate token', 'positional', 'BOS'], role),
    greatest(induction_random_period, previous_token) DESC,
    model,
    head
