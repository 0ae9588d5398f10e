-- statement: when the induction head is silenced after it has formed, another one forms within as many tokens again
-- source: singh-2024
-- models: all
-- needs: interventions SIMILAR TO 'silence (induction|L[0-9]+H[0-9]+) from [0-9]+'
-- lacks: models whose induction head is silenced after it has formed
-- stages: behaviour, activation-circuits
-- rule: holds if estimate > 0.2
-- range: -1 to 1
-- unit: induction_random_period
-- evidence: Interventions
SELECT seed, without_axes(cell, 'seed|interventions') AS configuration, other_best AS value
FROM intervention_effects
WHERE study = $study AND kind = 'silence' AND from_tokens > 0 AND until_tokens IS NULL AND head = base_reader
    AND base_tokens_to_form <= from_tokens AND other_best IS NOT NULL
