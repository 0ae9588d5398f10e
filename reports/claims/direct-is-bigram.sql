-- statement: the direct path learns the bigrams of the corpus: alone, it explains most of what they know beyond
--   frequencies
-- source: 002
-- over: models
-- needs: n_layers = 0
-- lacks: models of zero layers
-- rule: holds if estimate > 0.9
-- unit: share of loss
-- evidence: The direct path and bigrams
SELECT
    avg(explained_share) AS estimate,
    avg(explained_share) - ci95(explained_share) AS ci_low,
    avg(explained_share) + ci95(explained_share) AS ci_high,
    count(explained_share) AS n
FROM study_models
JOIN models USING (model_id)
JOIN bigrams USING (model_id)
WHERE study = $study AND n_layers = 0
