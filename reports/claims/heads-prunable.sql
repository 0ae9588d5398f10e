-- statement: many heads can be removed without harm: pruned one by one by their ablation, at under 1 % more loss
-- source: michel-2019, 4 Iterative Pruning of Attention Heads
-- texts: parallel-heads
-- needs: total_heads >= 8 AND coalesce(prune_to, 1) = 1 AND measures($study, 'pruning')
-- lacks: models of 8 heads or more that training doesn't prune, or the stage pruning
-- rule: holds if estimate > 0.2
-- quantity: fraction
-- unit: share of the heads there are
-- evidence: Pruning
-- changed: 2026-11-28, heads that training had removed counted as removable; now models of 8 heads or more, none
--   pruned in training, for each configuration
SELECT model_id, fraction_within_1_percent AS value, prunable_heads.total_heads AS counted
FROM cells
JOIN prunable_heads USING (model_id)
WHERE
    study = $study
    AND cells.total_heads >= 8
    AND coalesce(prune_to, 1) = 1
    AND procedure = 'iterative'
    AND order_method = 'ablation_mean'
