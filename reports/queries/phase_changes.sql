-- How scores rose, in the model that stands for each label; the abrupt ones first, and of them the largest changes.
SELECT
    label AS model,
    score,
    head_label(layer, head) AS head,
    if(score = 'repeat_gain_nats', 'all', NULL) AS head_note,
    before,
    after,
    kind AS rise,
    tokens_factor,
    if(kind = 'none', 'no rise', 'can''t be told') AS tokens_factor_note,
    window_start_tokens,
    if(kind = 'abrupt', NULL, 'not abrupt') AS window_start_tokens_note,
    window_end_tokens,
    if(kind = 'abrupt', NULL, 'not abrupt') AS window_end_tokens_note,
    has_ended,
    if(kind = 'abrupt', NULL, 'not abrupt') AS has_ended_note,
    in_context_learning_share,
    if(kind = 'abrupt', NULL, 'not abrupt') AS in_context_learning_share_note
FROM labelled_models
JOIN phase_changes USING (model_id)
WHERE study = $study AND stands_for_label AND kind IS NOT NULL
ORDER BY list_position(['abrupt', 'gradual', 'unresolved', 'none'], kind), score, after - before DESC, label
