-- statement: beside heads, the direct path fills in what they leave: it correlates more with that than with raw
--   bigrams
-- source: 002
-- over: models
-- needs: n_layers = 1
-- lacks: models of one layer
-- rule: holds if estimate > 0
-- unit: correlation
-- evidence: The direct path and bigrams
SELECT model_id, gap_correlation - gap_bigram_correlation AS value
FROM cells
JOIN bigrams USING (model_id)
WHERE study = $study AND n_layers = 1
