-- kind: self-check
-- statement: heads can be computed in any order, apart or together
-- source: elhage-2021, Attention Heads are Independent and Additive
-- texts: multi-head, parallel-heads
-- needs: total_heads > 0
-- lacks: models with heads
-- rule: holds if every model < 1e-5
-- unit: standard deviations
-- evidence: Identities
-- changed: 2026-11-28, an identity, no longer among findings
SELECT model_id, difference AS value
FROM cells
JOIN identities USING (model_id)
WHERE study = $study AND identity = 'heads-independent'
