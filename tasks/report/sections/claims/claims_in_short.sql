-- The study's self-checks in one line, and a banner if none of its models learned.
SELECT self_checks, banner
FROM claims_in_short
WHERE study = $study
