-- statement: without the head that becomes the strongest writer an induction head forms all the same, with another writer
-- source: singh-2024
-- models: all
-- needs: interventions SIMILAR TO 'silence (L[0-9]+H[0-9]+|writer)'
-- lacks: models with the base's writer, or each head of its layer, silenced from the start
-- stages: behaviour, activation-circuits
-- rule: holds if estimate > 0.2
-- range: -1 to 1
-- unit: induction_random_period
-- evidence: Interventions
SELECT seed, without_axes(cell, 'seed|interventions') AS configuration, induction_random_period AS value
FROM intervention_effects
WHERE study = $study AND kind = 'silence' AND from_tokens = 0 AND until_tokens IS NULL AND head = base_writer
