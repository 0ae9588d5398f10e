-- kind: self-check
-- statement: once a token is attended to, what a head does to the output depends on that token alone
-- source: elhage-2021, Splitting Attention Head terms into Query-Key and Output-Value Circuits
-- texts: one-layer
-- needs: heads_per_layer[1] > 0 AND normalization = 'none' AND NOT biases AND positions NOT IN ('learned',
--   'sinusoidal')
-- lacks: models whose first layer reads tokens alone: no norms or biases, no positions added to the stream
-- rule: holds if every model < 1e-5
-- unit: standard deviations
-- evidence: Identities
-- changed: 2026-11-28, an identity, no longer among findings
SELECT model_id, difference AS value
FROM cells
JOIN identities USING (model_id)
WHERE study = $study AND identity = 'source-decides'
