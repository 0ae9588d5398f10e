-- What is a model called, and which studies does it belong to? One row a model.
--
-- models.*
-- studies: the studies that the model belongs to
SELECT model_id, name, list(study ORDER BY study) FILTER (study IS NOT NULL) AS studies, seed, n_layers
FROM models
LEFT JOIN study_models USING (model_id)
GROUP BY ALL
ORDER BY name, seed, model_id
