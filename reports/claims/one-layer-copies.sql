-- statement: most heads of one-layer models spend their capacity on copying (copying_eigenvalues > 0.5)
-- source: elhage-2021, Copying / Primitive In-Context Learning
-- texts: one-layer
-- needs: n_layers = 1
-- lacks: models of one layer
-- rule: holds if estimate > 0.5
-- quantity: share
-- unit: share of heads
-- evidence: Copying and matching
-- changed: 2026-11-28, every model counted the same, whatever its heads; now heads count once each, models as
--   clusters
SELECT model_id, avg((copying_eigenvalues > clear_eigenvalues())::INTEGER) AS value, count(copying_eigenvalues) AS counted
FROM cells
JOIN last_heads USING (model_id)
WHERE study = $study AND n_layers = 1
GROUP BY model_id
