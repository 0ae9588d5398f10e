-- statement: two-layer models compose by K with a single head of the first layer: over four in five of the pairs that compose
--   significantly are by K, and with one and the same writer
-- source: elhage-2021, Analyzing a Two-Layer Model
-- texts: composition
-- needs: n_layers = 2 AND n_heads > 1
-- lacks: models of two layers with two heads or more in each
-- rule: holds if estimate > 0.8
-- quantity: share
-- unit: share of pairs that compose
-- evidence: Which heads compose
-- empty: no pair that composes was measured
-- changed: 2026-11-28, models of different shapes were pooled; now each configuration is decided from its seeds;
--   where the first layer has one head there is no other writer, so such models no longer count; "most" meant 0.8
WITH writers AS (
    SELECT model_id, seed, count(*) AS n_pairs, count(*) FILTER (kind = 'K') AS n_by_keys
    FROM cells
    JOIN last_compositions USING (model_id)
    WHERE study = $study AND n_layers = 2 AND n_heads > 1 AND significant
    GROUP BY model_id, seed, writer_layer, writer_head
)
SELECT model_id, seed, max(n_by_keys) / sum(n_pairs) AS value, sum(n_pairs) AS counted
FROM writers
GROUP BY model_id, seed
