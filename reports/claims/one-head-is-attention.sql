-- statement: a single head is ordinary self-attention
-- source: 001
-- over: models
-- needs: total_heads > 0
-- lacks: models with heads
-- rule: holds if every model < 1e-5
-- unit: standard deviations
-- evidence: Identities
SELECT model_id, difference AS value
FROM cells
JOIN identities USING (model_id)
WHERE study = $study AND identity = 'one-head-is-attention'
