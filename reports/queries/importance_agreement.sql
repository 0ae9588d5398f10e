-- How well each method ranks heads as ablation_mean does, seed by seed: the mean over the models with three heads or more.
SELECT
    method,
    labelled_models.seed,
    count(*) AS n_models,
    count(DISTINCT label) AS n_kinds,
    avg(spearman) AS spearman
FROM labelled_models
JOIN importance_agreement USING (model_id)
WHERE study = $study AND method <> 'ablation_mean' AND spearman IS NOT NULL
GROUP BY method, labelled_models.seed
ORDER BY method, labelled_models.seed
