-- How well each method ranks heads as ablation_mean does, in each kind of model of eight heads or more, seed by seed.
SELECT
    label,
    method,
    labelled_models.seed,
    importance_agreement.n_heads,
    spearman
FROM labelled_models
JOIN importance_agreement USING (model_id)
WHERE study = $study AND method <> 'ablation_mean' AND spearman IS NOT NULL AND importance_agreement.n_heads >= 8
ORDER BY label, method, labelled_models.seed
