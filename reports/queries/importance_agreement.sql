-- How well each method ranks heads as ablation_mean does, over all models of the study with three heads or more.
SELECT
    method,
    count(spearman) AS n_models,
    avg(spearman) AS spearman,
    ci95(spearman) AS spearman_ci95
FROM labelled_models
JOIN importance_agreement USING (model_id)
WHERE study = $study AND method <> 'ablation_mean'
GROUP BY method
HAVING n_models > 0
ORDER BY spearman DESC, method
