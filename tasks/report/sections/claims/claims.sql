-- What the study says of every claim: findings, descriptions and self-checks, the decided ones first.
SELECT kind, verdict, verdict <> 'not tested' AS is_tested, statement, must_be, finding, source, source_url, texts, evidence
FROM claim_findings
WHERE study = $study
ORDER BY verdict_rank(verdict), claim_id
