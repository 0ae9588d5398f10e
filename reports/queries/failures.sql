-- Models that failed, and why.
SELECT model_id, cell, failure
FROM study_models
WHERE study = $study AND status = 'failed'
ORDER BY model_id
