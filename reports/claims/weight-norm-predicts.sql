-- statement: weight magnitude is a usable importance: its ranks agree with those of ablation (Spearman)
-- source: 003
-- over: models
-- needs: total_heads > 2 AND measures($study, 'importance')
-- lacks: models of three heads or more, or the stage importance
-- rule: holds if estimate > 0.5
-- unit: rank correlation
-- evidence: Importance
SELECT model_id, spearman AS value
FROM cells
JOIN importance_agreement USING (model_id)
WHERE study = $study AND method = 'weight_norm'
