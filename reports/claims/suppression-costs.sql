-- statement: an induction head that is suppressed until it would have formed forms within fewer tokens once it is released
-- source: chen-2023
-- models: all
-- needs: interventions SIMILAR TO 'clamp (induction|L[0-9]+H[0-9]+) to uniform until [0-9]+'
-- lacks: models whose induction head is clamped to uniform attention, and released
-- stages: behaviour, activation-circuits
-- rule: holds if estimate < 0
-- unit: doublings of the tokens to form
-- evidence: Interventions
SELECT
    seed,
    without_axes(cell, 'seed|interventions') AS configuration,
    log2(coalesce(tokens_after_release, trained_tokens - until_tokens) / base_tokens_to_form) AS value
FROM intervention_effects
WHERE study = $study AND done SIMILAR TO 'clamp L[0-9]+H[0-9]+ to uniform until [0-9]+' AND head = base_reader
    AND base_tokens_to_form <= until_tokens AND (tokens_to_form IS NULL OR tokens_to_form >= until_tokens)
