-- statement: beside heads, the direct path fills in what they leave: what they raise on average, it lowers
-- source: 002
-- over: models
-- needs: n_layers = 1
-- lacks: models of one layer
-- rule: holds if estimate < 0
-- unit: coefficient
-- evidence: The direct path and bigrams
SELECT model_id, gap_coefficient AS value
FROM cells
JOIN bigrams USING (model_id)
WHERE study = $study AND n_layers = 1
