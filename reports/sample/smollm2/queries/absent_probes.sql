SELECT task, why_absent AS why, count(*) AS models
FROM labelled_models
JOIN probe_tasks USING (model_id)
WHERE study = 'smollm2' AND why_absent IS NOT NULL
GROUP BY task, why_absent
ORDER BY task, why
