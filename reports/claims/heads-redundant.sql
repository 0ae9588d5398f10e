-- statement: some heads repeat others: most models have a redundant pair
-- source: 003
-- over: models
-- needs: total_heads > 1 AND measures($study, 'redundancy')
-- lacks: models of two heads or more, or the stage redundancy
-- rule: holds if estimate > 0.5
-- unit: share of models
-- evidence: Redundant pairs
SELECT model_id, n_redundant > 0 AS value
FROM cells
JOIN redundant_pairs USING (model_id)
WHERE study = $study
