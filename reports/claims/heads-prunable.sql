-- statement: many heads can be removed without harm: pruned one by one by their ablation, at under 1 % more loss
-- source: 003
-- over: models
-- needs: total_heads > 0 AND measures($study, 'pruning')
-- lacks: models with heads, or the stage pruning
-- rule: holds if estimate > 0.2
-- unit: share of heads
-- evidence: Pruning
SELECT model_id, fraction_within_1_percent AS value
FROM cells
JOIN prunable_heads USING (model_id)
WHERE study = $study AND procedure = 'iterative' AND order_method = 'ablation_mean'
