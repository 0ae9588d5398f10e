-- statement: normalising queries and keys steadies training: gradient norms after warm-up spread less, at the highest
--   learning rate that has both
-- source: henry-2020
-- texts: multi-head
-- needs: (SELECT count(DISTINCT (learning_rate, muon_learning_rate)) > 1 FROM cells) AND EXISTS (
--     SELECT 1 FROM cells GROUP BY without_axes(cell, 'qk_normalization') HAVING count(DISTINCT qk_normalization) = 2)
-- lacks: models with and without qk_normalization, at two learning rates or more
-- rule: holds if estimate < 0
-- seeds: 5
-- unit: standard deviations of log gradient norm
-- evidence: Learning
-- changed: 2026-11-28, five seeds instead of two
WITH spreads AS (
    SELECT model_id, stddev_samp(ln(gradient_norm)) AS spread
    FROM training
    JOIN models USING (model_id)
    WHERE step > warmup_steps AND gradient_norm > 0 AND isfinite(gradient_norm)
    GROUP BY model_id
),
pairs AS (
    SELECT
        seed,
        without_axes(cell, 'seed|qk_normalization|learning_rate|muon_learning_rate') AS configuration,
        learning_rate,
        muon_learning_rate,
        avg(spread) FILTER (qk_normalization) - avg(spread) FILTER (NOT qk_normalization) AS difference
    FROM cells
    JOIN spreads USING (model_id)
    WHERE study = $study
    GROUP BY ALL
)
SELECT seed, configuration, arg_max(difference, (muon_learning_rate, learning_rate)) AS value
FROM pairs
WHERE difference IS NOT NULL
GROUP BY seed, configuration
