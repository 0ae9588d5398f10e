-- statement: the direct path learns the bigrams of the corpus: alone, it explains most of what they know beyond
--   frequencies
-- source: 002
-- over: models
-- needs: n_layers = 0
-- lacks: models of zero layers
-- rule: holds if estimate > 0.9
-- unit: share of loss
-- evidence: The direct path and bigrams
SELECT model_id, explained_share AS value
FROM cells
JOIN bigrams USING (model_id)
WHERE study = $study AND n_layers = 0
