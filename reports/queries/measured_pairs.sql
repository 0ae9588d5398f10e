-- The pairs of prompts that each model was measured on, and its log-odds at both prompts of each.
SELECT model_id, prompts, pair, template, prompt, corrupt, answers, wrong, clean_nats, corrupt_nats
FROM labelled_models
JOIN prompts USING (model_id)
WHERE study = $study AND clean_nats IS NOT NULL
ORDER BY model_id, prompts, pair
