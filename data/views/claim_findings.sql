-- What does each study say of each claim, in words? One row a study and claim, as in claims.
--
-- claims.*
-- finding: the estimate, its 95 % interval, unit and n, or why there is none
-- must_be: what the estimate must be for the claim to hold
WITH in_words AS (
    SELECT
        *,
        replace(format('{:.3g}', estimate), 'e-0', 'e-') AS value,
        format(' ({:.3g} to {:.3g})', ci_low, ci_high) AS bounds,
        if(n = 1, rtrim(over, 's'), over) AS values_of
    FROM claims
)
SELECT
    study,
    claim_id,
    verdict,
    concat_ws('; ', if(n > 0, concat(value, bounds, ' ' || unit, ', ', n, ' ', values_of), NULL), reason) AS finding,
    replace(replace(rule, 'holds if ', ''), 'estimate ', '') AS must_be,
    statement,
    source,
    evidence
FROM in_words
ORDER BY study, claim_id
