-- What every trained model took, the longest first.
SELECT model_id AS model, seed, parameters, tokens, steps, seconds, tokens_per_second, device, precision,
    threads, repeats_fraction
FROM study_models
JOIN models USING (model_id)
WHERE study = $study AND imported_as IS NULL
ORDER BY seconds DESC NULLS LAST, model_id
