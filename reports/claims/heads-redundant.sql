-- statement: some heads repeat others: most models have a redundant pair
-- source: 003
-- over: models
-- needs: total_heads > 1 AND measures($study, 'redundancy')
-- lacks: models of two heads or more, or the stage redundancy
-- rule: holds if estimate > 0.5
-- unit: share of models
-- evidence: Redundant pairs
WITH shares AS (
    SELECT avg((n_redundant > 0)::INTEGER) AS share, count(n_redundant) AS n
    FROM study_models
    JOIN redundant_pairs USING (model_id)
    WHERE study = $study
)
SELECT share AS estimate, share_low(share, n) AS ci_low, share_high(share, n) AS ci_high, n FROM shares
