-- What does each study say of each claim, in words? One row a study and claim, as in claims.
--
-- claims.*
-- finding: what was found: an estimate and its 95 % interval, or the range over configurations, then random weights, n and the reason
-- must_be: what the estimate must be for the claim to hold; NULL of a description
WITH in_words AS (
    SELECT
        claims.*,
        replace(format('{:.3g}', estimate), 'e-0', 'e-') AS value,
        format(' ({:.3g} to {:.3g})', ci_low, ci_high) AS bounds,
        if(estimate_low = estimate_high, format('{:.3g}', estimate_low), format('{:.3g} to {:.3g}', estimate_low, estimate_high)) AS ends,
        n || ' ' || if(n = 1, rtrim(over, 's'), over) AS values_of,
        if(most > n, ' or more', '') AS more,
        coalesce(' (last look at ' || look || ' seeds)', '') AS at_look,
        coalesce(' of ' || only_one, '') AS of_which
    FROM claims
    LEFT JOIN (
        SELECT
            study,
            claim_id,
            max(n) AS most,
            if(count(*) FILTER (n > 0) = 1, any_value(nullif(configuration, 'all else alike')) FILTER (n > 0), NULL) AS only_one
        FROM claim_configurations
        GROUP BY ALL
    ) USING (study, claim_id)
)
SELECT
    study,
    claim_id,
    kind,
    verdict,
    concat_ws(
        '; ',
        CASE
            WHEN n_configurations > 1 AND kind = 'description'
                THEN concat(value, ' (' || ends || ' over ', n_configurations, ' configurations)', ' ' || unit, ', ', values_of, ' each', at_look)
            WHEN n_configurations > 1
                THEN concat(ends, ' ' || unit, ', ', n_configurations, ' configurations of ', values_of, more, at_look)
            WHEN n > 0 THEN concat(value, bounds, ' ' || unit, ', ', values_of, of_which)
        END,
        format('{:.3g} for random weights', control),
        reason
    ) AS finding,
    replace(replace(rule, 'holds if ', ''), 'estimate ', '') AS must_be,
    statement,
    source,
    source_url,
    texts,
    evidence
FROM in_words
ORDER BY study, verdict_rank(verdict), claim_id
