-- statement: the K-composed QK circuit of an induction head and its strongest writer matches equal tokens (matching
--   eigenvalues)
-- source: elhage-2021, Checking the Mechanistic Theory
-- texts: composition
-- needs: n_layers > 1 AND total_heads > 1
-- lacks: models with heads in two layers
-- stages: weight-circuits, activation-circuits
-- rule: holds if estimate > 0.5
-- range: -1 to 1
-- evidence: The induction circuit
-- empty: no model has an induction circuit by K-composition
-- changed: 2026-11-28, the strongest pair was no induction circuit; now that of the circuit, for each configuration
SELECT model_id, cells.seed, matching_eigenvalues AS value
FROM cells
JOIN induction_circuits USING (model_id)
WHERE study = $study AND is_strongest AND found AND kind = 'K'
