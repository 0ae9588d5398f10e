-- Scores that rose abruptly in a model, and when.
SELECT model_id, score, layer, head, before, after, step, tokens, window_start_tokens, window_end_tokens
FROM phase_changes
SEMI JOIN (FROM study_models WHERE study = $study) USING (model_id)
WHERE kind = 'abrupt'
ORDER BY model_id, score
