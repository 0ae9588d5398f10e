-- Which kinds of model turn their queries and keys.
SELECT string_agg(DISTINCT label, ', ' ORDER BY label) AS labels
FROM labelled_models
JOIN models USING (model_id)
WHERE study = $study AND positions = 'rotary'
HAVING count(*) > 0
