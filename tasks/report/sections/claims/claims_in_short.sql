-- The study's self-checks in one line, and a banner if none of its models learned.
SELECT self_checks, banner, are_imported, n_findings_not_tested
FROM claims_in_short
WHERE study = $study
