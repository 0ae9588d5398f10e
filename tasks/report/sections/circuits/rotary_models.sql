-- Which kinds of model whose compositions were measured turn their queries and keys.
SELECT string_agg(DISTINCT label, ', ' ORDER BY label) AS labels
FROM labelled_models
JOIN models USING (model_id)
WHERE study = $study
    AND positions = 'rotary'
    AND model_id IN (SELECT model_id FROM compositions)
HAVING count(*) > 0
