-- kind: self-check
-- statement: in one layer, the direct path and a term for each head add up to the logits, and can be studied one at a
--   time
-- source: elhage-2021, The Path Expansion Trick
-- texts: one-layer
-- needs: n_layers = 1 AND feed_forward = 'none'
-- lacks: attention-only models of one layer
-- rule: holds if every model < 1e-4
-- unit: standard deviations
-- evidence: Identities
-- changed: 2026-11-28, an identity, no longer among findings
SELECT model_id, difference AS value
FROM cells
JOIN identities USING (model_id)
WHERE study = $study AND identity = 'terms-add'
