-- What a linear probe reads of each head, and how much more than baselines tell.
SELECT model_id, layer, head, task, accuracy, gain, gain_low, gain_high
FROM probes
SEMI JOIN (FROM study_models WHERE study = $study) USING (model_id)
WHERE head IS NOT NULL
ORDER BY model_id, layer, head, task
