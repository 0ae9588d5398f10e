-- Tasks of probes that this text cannot have, and why.
SELECT task, why_absent AS why, count(*) AS models
FROM labelled_models
JOIN probe_tasks USING (model_id)
WHERE study = $study AND why_absent IS NOT NULL
GROUP BY task, why_absent
ORDER BY task, why
