-- statement: most heads of one-layer models spend their capacity on copying (copying_eigenvalues > 0.5)
-- source: 002
-- over: models
-- needs: n_layers = 1
-- lacks: models of one layer
-- rule: holds if estimate > 0.5
-- unit: share of heads
-- evidence: Copying and matching
SELECT model_id, avg((copying_eigenvalues > clear_eigenvalues())::INTEGER) AS value
FROM cells
JOIN last_heads USING (model_id)
WHERE study = $study AND n_layers = 1
GROUP BY model_id
