-- What comes before a study's claims? One row a study: its self-checks in one line, and a banner if none of its models
-- learned.
--
-- study: studies.study
-- n_models: models trained
-- n_learned: models that learned, as in model_summary.learned
-- are_imported: whether all models came as they are, so that no finding can be tested on several seeds of one
-- n_findings_not_tested: findings that were not tested
-- n_findings: findings that were tested
-- n_decided: those of which the verdict has a p-value: they hold, fail or depend
-- n_by_chance: as many verdicts as chance would give of n_findings statements that say nothing, at most
-- n_surviving: decided findings that survive a false-discovery rate of 5 %
-- not_surviving: names of those that don't; empty if all do
-- self_checks: how many of the self-checks that were made pass; NULL if none was made
-- banner: what to know if no model learned; NULL if one did, or if all models came as they are and none was measured for it
WITH learning AS (
    SELECT
        study,
        count(*) AS n_models,
        count(*) FILTER (learned) AS n_learned,
        bool_and(imported_as IS NOT NULL) AS are_imported,
        count(learned) AS n_known
    FROM cells
    GROUP BY study
),
checks AS (
    SELECT
        study,
        count(*) FILTER (kind = 'self-check' AND verdict <> 'not tested') AS n_made,
        count(*) FILTER (kind = 'self-check' AND verdict = 'passes') AS n_passed,
        count(*) FILTER (kind = 'finding' AND verdict = 'not tested') AS n_findings_not_tested,
        count(*) FILTER (kind = 'finding' AND verdict <> 'not tested') AS n_findings,
        count(survives) AS n_decided,
        count(*) FILTER (survives) AS n_surviving,
        list(claim_id ORDER BY claim_id) FILTER (NOT survives) AS not_surviving
    FROM claims
    GROUP BY study
)
SELECT
    study,
    coalesce(learning.n_models, 0) AS n_models,
    coalesce(n_learned, 0) AS n_learned,
    coalesce(are_imported, false) AS are_imported,
    coalesce(n_findings_not_tested, 0) AS n_findings_not_tested,
    coalesce(n_findings, 0) AS n_findings,
    coalesce(n_decided, 0) AS n_decided,
    0.05 * coalesce(n_findings, 0) AS n_by_chance,
    coalesce(n_surviving, 0) AS n_surviving,
    coalesce(not_surviving, []) AS not_surviving,
    if(n_made > 0, format('{} of {} pass', n_passed, n_made), NULL) AS self_checks,
    CASE
        WHEN n_learned > 0 OR learning.n_models IS NULL OR (are_imported AND n_known = 0) THEN NULL
        WHEN n_known = 0 THEN 'Whether these models learned anything is not known: their validation loss, or what bigrams lose on that text, is missing. So nothing is found of what training does.'
        ELSE 'These models learned too little to say what training does: none predicts better than bigrams do (without heads: than token frequencies). Train them on more tokens.'
    END AS banner
FROM studies
LEFT JOIN learning USING (study)
LEFT JOIN checks USING (study)
ORDER BY study
