-- statement: virtual heads add little in two-layer models: paths through two heads lower the loss by less than a fifth of
--   what paths through one do
-- source: elhage-2021, Term Importance Analysis
-- texts: composition
-- needs: n_layers = 2 AND total_heads > 1
-- lacks: models of two layers
-- rule: holds if estimate < 0.2
-- unit: ratio of loss effects
-- evidence: Paths
-- changed: 2026-11-28, models of different shapes were pooled; now each configuration is decided from its seeds
WITH effects AS (
    SELECT
        model_id,
        max(loss_effect_nats) FILTER (term = 'order 1') AS of_one,
        max(loss_effect_nats) FILTER (term = 'order 2') AS of_two
    FROM path_terms
    GROUP BY model_id
)
SELECT model_id, of_two / of_one AS value
FROM cells
JOIN effects USING (model_id)
WHERE study = $study AND n_layers = 2 AND of_one > 0
