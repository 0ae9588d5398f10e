SELECT kind, verdict, verdict <> 'not tested' AS is_tested, statement, must_be, finding, source, source_url, texts, evidence
FROM claim_findings
WHERE study = 'smollm2'
ORDER BY verdict_rank(verdict), claim_id
