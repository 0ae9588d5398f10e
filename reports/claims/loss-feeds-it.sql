-- statement: without loss on the tokens that induction predicts induction is weaker
-- source: sahin-2025
-- models: all
-- needs: interventions SIMILAR TO 'unlearn (token|pair|beyond_bigrams)'
-- lacks: models trained without loss on what induction predicts
-- stages: behaviour, activation-circuits
-- rule: holds if estimate < 0
-- range: -2 to 2
-- unit: induction_random_period
-- evidence: Interventions
SELECT
    seed,
    without_axes(cell, 'seed|interventions') AS configuration,
    induction_random_period - base_induction_random_period AS value
FROM intervention_effects
WHERE study = $study AND kind = 'unlearn' AND from_tokens = 0 AND until_tokens IS NULL AND base_reader IS NOT NULL
    AND induction_random_period IS NOT NULL
