-- statement: two-layer models compose by K with a single head of the first layer: most pairs that compose do so
-- source: 000
-- over: models
-- needs: n_layers = 2 AND total_heads > 1
-- lacks: models of two layers
-- rule: holds if estimate > 0.8
-- unit: share of pairs that compose
-- evidence: Which heads compose
-- empty: no pair that composes was measured
WITH last_pairs AS (
    FROM compositions QUALIFY step = max(step) OVER (PARTITION BY model_id)
),
writers AS (
    SELECT model_id, count(*) AS n_pairs, count(*) FILTER (kind = 'K') AS n_by_keys
    FROM study_models
    JOIN models USING (model_id)
    JOIN last_pairs USING (model_id)
    WHERE study = $study AND n_layers = 2 AND significant
    GROUP BY model_id, writer_layer, writer_head
),
by_model AS (
    SELECT max(n_by_keys) / sum(n_pairs) AS share FROM writers GROUP BY model_id
)
SELECT
    avg(share) AS estimate,
    avg(share) - ci95(share) AS ci_low,
    avg(share) + ci95(share) AS ci_high,
    count(share) AS n
FROM by_model
