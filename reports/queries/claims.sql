-- What the study says of every claim, the decided ones first.
SELECT verdict, verdict <> 'not tested' AS is_tested, statement, must_be, finding, source, evidence
FROM claim_findings
WHERE study = $study
ORDER BY verdict_rank(verdict), claim_id
