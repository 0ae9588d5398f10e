-- statement: weight magnitude is a usable importance in models of 16 heads or more: its ranks agree with those of
--   ablation (Spearman)
-- source: parallel-heads, Impacto do Número de Cabeças na Complexidade e Desempenho
-- needs: total_heads >= 16 AND measures($study, 'importance')
-- lacks: models of 16 heads or more, or the stage importance
-- rule: holds if estimate > 0.5
-- quantity: correlation
-- unit: rank correlation
-- evidence: Importance
-- changed: 2026-11-28, correlations over three heads say nothing; now models of 8 heads or more, by Fisher's z; 2026-11-30,
--   over 8 heads a correlation scatters by 0.4, now models of 16 or more
SELECT model_id, spearman AS value, importance_agreement.n_heads AS counted
FROM cells
JOIN importance_agreement USING (model_id)
WHERE study = $study AND method = 'weight_norm' AND importance_agreement.n_heads >= 16
