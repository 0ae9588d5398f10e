-- When scores took off, in the model that stands for each label; the largest changes first.
SELECT
    label AS model,
    score,
    head_label(layer, head) AS head,
    if(score = 'repeat_gain_nats', 'all', NULL) AS head_note,
    before,
    after,
    tokens AS steepest_at_tokens,
    if(occurred, NULL, 'none') AS steepest_at_tokens_note,
    window_start_tokens,
    if(occurred, NULL, 'none') AS window_start_tokens_note,
    window_end_tokens,
    if(occurred, NULL, 'none') AS window_end_tokens_note,
    in_context_learning_share,
    if(occurred, NULL, 'none') AS in_context_learning_share_note
FROM labelled_models
JOIN phase_changes USING (model_id)
WHERE study = $study AND stands_for_label AND occurred IS NOT NULL
ORDER BY occurred DESC, score, after - before DESC, label
