-- statement: beside heads, the direct path fills in what they leave: of tokens that bigrams make as likely, it raises those
--   less that heads raise more
-- source: elhage-2021, The Path Expansion Trick
-- texts: one-layer
-- needs: n_layers = 1
-- lacks: models of one layer
-- rule: holds if estimate < 0
-- unit: coefficient
-- evidence: The direct path and bigrams
-- changed: 2026-11-28, correlations depended on which text is used; now a regression, all on training text, for each
--   configuration
SELECT model_id, gap_coefficient AS value
FROM cells
JOIN bigrams USING (model_id)
WHERE study = $study AND n_layers = 1
