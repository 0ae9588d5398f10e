-- kind: description
-- statement: in models of one layer, among bigrams that are equally likely, by how much the direct path's logit changes for each logit by which the
--   mean of all else is higher; below 0 for any two parts of logits that fit bigrams together
-- source: elhage-2021, The Path Expansion Trick
-- texts: one-layer
-- needs: n_layers = 1
-- lacks: models of one layer
-- unit: coefficient
-- evidence: The direct path and bigrams
-- changed: 2026-11-28, correlations depended on which text is used; now a regression, all on training text, for each
--   configuration; that it is below 0 says nothing of heads (two halves, drawn at random, of a model without heads that
--   fits bigrams give -0.75), so it is a description now
SELECT model_id, gap_coefficient AS value
FROM cells
JOIN bigrams USING (model_id)
WHERE study = $study AND n_layers = 1
