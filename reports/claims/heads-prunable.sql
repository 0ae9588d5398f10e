-- statement: many heads can go without harm: pruned one by one by their ablation, at under 1 % more loss
-- source: 003
-- over: models
-- needs: total_heads > 0 AND measures($study, 'pruning')
-- lacks: models with heads, or the stage pruning
-- rule: holds if estimate > 0.2
-- unit: share of heads
-- evidence: Pruning
SELECT
    avg(fraction_within_1_percent) AS estimate,
    avg(fraction_within_1_percent) - ci95(fraction_within_1_percent) AS ci_low,
    avg(fraction_within_1_percent) + ci95(fraction_within_1_percent) AS ci_high,
    count(fraction_within_1_percent) AS n
FROM study_models
JOIN prunable_heads USING (model_id)
WHERE study = $study AND procedure = 'iterative' AND order_method = 'ablation_mean'
