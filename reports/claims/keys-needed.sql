-- statement: with all that the first layer writes cut from the second's keys no induction head forms
-- source: elhage-2021, Induction Heads
-- models: all
-- needs: interventions = 'cut L0 -> L1.K'
-- lacks: models with the edges L0 -> L1.K cut from the start
-- stages: behaviour, activation-circuits
-- rule: holds if estimate < 0.05
-- range: -1 to 1
-- unit: induction_random_period
-- evidence: Interventions
SELECT seed, without_axes(cell, 'seed|interventions') AS configuration, induction_random_period AS value
FROM intervention_effects
WHERE study = $study AND done = 'cut L0 -> L1.K' AND base_reader IS NOT NULL AND induction_random_period IS NOT NULL
