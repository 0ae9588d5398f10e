-- Models that were left out, since the head that they name isn't there in the model without interventions.
SELECT cell, failure AS why
FROM study_models
WHERE study = $study AND status = 'left out'
ORDER BY cell
