-- The study's self-checks in one line, and a banner if none of its models learned.
SELECT
    self_checks,
    banner,
    are_imported,
    n_findings_not_tested,
    n_findings,
    n_decided,
    format('{:.2g}', n_by_chance) AS n_by_chance,
    n_surviving,
    array_to_string(not_surviving, ', ') AS not_surviving
FROM claims_in_short
WHERE study = $study
