-- kind: self-check
-- statement: attention is the masked softmax of a bilinear form in tokens, plus position terms
-- source: elhage-2021, Splitting Attention Head terms into Query-Key and Output-Value Circuits
-- texts: one-layer
-- needs: heads_per_layer[1] > 0 AND normalization = 'none' AND NOT biases AND NOT qk_normalization
--   AND positions IN ('relative', 'none') AND score_cap IS NULL
-- lacks: models whose first layer reads tokens alone: no norms, biases, qk_normalization or score_cap, positions relative or none
-- rule: holds if every model < 1e-5
-- unit: attention
-- evidence: Identities
-- changed: 2026-11-28, an identity, no longer among findings
SELECT model_id, difference AS value
FROM cells
JOIN identities USING (model_id)
WHERE study = $study AND identity = 'pattern-bilinear'
