-- kind: self-check
-- statement: the logits are the sum of the model's end-to-end paths
-- source: elhage-2021, The Path Expansion Trick
-- texts: composition, one-layer
-- needs: total_heads > 0
-- lacks: models with heads
-- rule: holds if every model < 1e-4
-- unit: standard deviations
-- evidence: Identities
-- changed: 2026-11-28, an identity, no longer among findings
SELECT model_id, difference AS value
FROM cells
JOIN identities USING (model_id)
WHERE study = $study AND identity = 'paths-sum'
