-- Every score of every head at every checkpoint, of all models of the study.
SELECT heads.*
FROM heads
SEMI JOIN (FROM study_models WHERE study = $study) USING (model_id)
ORDER BY model_id, step, layer, head
