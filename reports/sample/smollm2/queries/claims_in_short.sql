SELECT self_checks, banner
FROM claims_in_short
WHERE study = 'smollm2'
