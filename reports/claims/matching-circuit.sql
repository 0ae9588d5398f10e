-- statement: the QK circuit of the strongest pair that K-composes matches equal tokens (matching eigenvalues)
-- source: 000
-- over: models
-- needs: n_layers = 2 AND total_heads > 1
-- lacks: models of two layers
-- rule: holds if estimate > 0.5
-- evidence: Copying and matching
-- empty: no pair that K-composes was measured
SELECT model_id, arg_max(matching_eigenvalues, z) AS value
FROM cells
JOIN last_compositions USING (model_id)
WHERE study = $study AND n_layers = 2 AND significant AND kind = 'K'
GROUP BY model_id
