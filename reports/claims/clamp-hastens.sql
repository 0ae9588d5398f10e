-- statement: a first-layer head that attends to the previous token from the start hastens the induction head
-- source: singh-2024
-- models: all
-- needs: interventions SIMILAR TO 'clamp L0H[0-9]+ to previous'
-- lacks: models with a head of the first layer clamped to the previous token from the start
-- stages: behaviour, activation-circuits
-- rule: holds if estimate < 0
-- unit: doublings of the tokens to form
-- evidence: Interventions
SELECT seed, without_axes(cell, 'seed|interventions') AS configuration, delay_at_least AS value
FROM intervention_effects
WHERE study = $study AND done SIMILAR TO 'clamp L0H[0-9]+ to previous' AND delay_at_least IS NOT NULL
