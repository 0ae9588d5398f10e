-- kind: self-check
-- statement: a single head is ordinary self-attention
-- source: vaswani-2017, 3.2.2 Multi-Head Attention
-- texts: multi-head
-- needs: total_heads > 0
-- lacks: models with heads
-- rule: holds if every model < 1e-5
-- unit: standard deviations
-- evidence: Identities
-- changed: 2026-11-28, an identity, no longer among findings
SELECT model_id, difference AS value
FROM cells
JOIN identities USING (model_id)
WHERE study = $study AND identity = 'one-head-is-attention'
