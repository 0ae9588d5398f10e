-- statement: with smeared keys two layers form an induction head earlier
-- source: olsson-2022, argument 2
-- models: all
-- needs: key_smearing AND n_layers = 2 AND interventions IS NULL AND EXISTS (
--     SELECT 1 FROM cells AS own WHERE n_layers = 2 AND interventions IS NULL
--     GROUP BY without_axes(cell, 'key_smearing') HAVING count(DISTINCT coalesce(key_smearing, false)) = 2)
-- lacks: models of two layers with and without smeared keys
-- stages: behaviour, activation-circuits
-- rule: holds if estimate < 0
-- unit: doublings of the tokens to form
-- evidence: Interventions
SELECT seed, without_axes(cell, 'seed|key_smearing') AS configuration, delay_at_least AS value
FROM intervention_effects
WHERE study = $study AND kind = 'smear' AND n_layers = 2 AND delay_at_least IS NOT NULL
