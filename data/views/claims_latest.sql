-- What is known of each claim? One row a claim: its most decisive verdict over all studies; of several, the one over most
-- values, then the newest. Holds and fails are more decisive than undecided, and undecided more than not tested.
--
-- claims.*
-- study: the study that says so
-- finished_at: when that study ended, UTC
-- n_holds: studies in which the claim holds
-- n_fails: studies in which it fails
SELECT
    claim_id,
    statement,
    source,
    verdict,
    estimate,
    ci_low,
    ci_high,
    n,
    over,
    unit,
    rule,
    reason,
    study,
    finished_at,
    count(*) FILTER (verdict = 'holds') OVER (PARTITION BY claim_id) AS n_holds,
    count(*) FILTER (verdict = 'fails') OVER (PARTITION BY claim_id) AS n_fails
FROM claims
LEFT JOIN studies USING (study)
QUALIFY row_number() OVER (
    PARTITION BY claim_id
    ORDER BY
        greatest(verdict_rank('fails'), verdict_rank(verdict)),
        n DESC NULLS LAST,
        finished_at DESC NULLS LAST,
        study
) = 1
ORDER BY claim_id
