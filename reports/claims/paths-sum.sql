-- statement: the logits are the sum of the model's end-to-end paths
-- source: 000, 002
-- over: models
-- needs: total_heads > 0
-- lacks: models with heads
-- rule: holds if every model < 1e-4
-- unit: standard deviations
-- evidence: Identities
SELECT model_id, difference AS value
FROM cells
JOIN identities USING (model_id)
WHERE study = $study AND identity = 'paths-sum'
