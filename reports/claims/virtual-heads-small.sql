-- statement: virtual heads add little in two-layer models: paths through two heads against paths through one
-- source: 000
-- over: models
-- needs: n_layers = 2 AND total_heads > 1
-- lacks: models of two layers
-- rule: holds if estimate < 0.2
-- unit: ratio of loss effects
-- evidence: Paths
WITH effects AS (
    SELECT
        model_id,
        max(loss_effect_nats) FILTER (term = 'order 1') AS of_one,
        max(loss_effect_nats) FILTER (term = 'order 2') AS of_two
    FROM path_terms
    GROUP BY model_id
),
by_model AS (
    SELECT of_two / of_one AS ratio
    FROM study_models
    JOIN models USING (model_id)
    JOIN effects USING (model_id)
    WHERE study = $study AND n_layers = 2 AND of_one > 0
)
SELECT
    avg(ratio) AS estimate,
    avg(ratio) - ci95(ratio) AS ci_low,
    avg(ratio) + ci95(ratio) AS ci_high,
    count(ratio) AS n
FROM by_model
