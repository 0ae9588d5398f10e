-- What the study says of every claim, to be compared with what another says.
SELECT claim_id, verdict, statement
FROM claims
WHERE study = $study
ORDER BY claim_id
