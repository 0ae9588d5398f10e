-- statement: silencing from the start the head that becomes the strongest writer delays the induction head, by more than
--   silencing the others of its layer does
-- source: singh-2024
-- models: all
-- needs: interventions SIMILAR TO 'silence L0H[0-9]+' AND (
--     SELECT count(DISTINCT interventions) > 1 FROM cells AS own WHERE interventions SIMILAR TO 'silence L0H[0-9]+')
-- lacks: models with each head of the first layer silenced from the start
-- stages: behaviour, activation-circuits
-- rule: holds if estimate > 0
-- unit: doublings of the tokens to form
-- evidence: Interventions
WITH silenced AS (
    SELECT
        seed,
        without_axes(cell, 'seed|interventions') AS configuration,
        avg(delay_at_least) FILTER (head = base_writer) AS of_writer,
        avg(delay_at_least) FILTER (head <> base_writer) AS of_others
    FROM intervention_effects
    WHERE study = $study AND kind = 'silence' AND from_tokens = 0 AND until_tokens IS NULL
        AND split_part(head, 'H', 1) = split_part(base_writer, 'H', 1)
    GROUP BY ALL
)
SELECT seed, configuration, least(of_writer, of_writer - of_others) AS value
FROM silenced
WHERE of_writer IS NOT NULL AND of_others IS NOT NULL
