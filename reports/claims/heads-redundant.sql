-- statement: some heads repeat others: most models have a redundant pair
-- source: michel-2019, 3 Are All Attention Heads Important?
-- texts: parallel-heads
-- needs: total_heads > 1 AND measures($study, 'redundancy')
-- lacks: models of two heads or more, or the stage redundancy
-- rule: holds if estimate > 0.5
-- quantity: share
-- unit: share of models
-- evidence: Redundant pairs
-- changed: 2026-11-28, models of different shapes were pooled; now each configuration is decided
--   from its seeds
SELECT model_id, n_redundant > 0 AS value
FROM cells
JOIN redundant_pairs USING (model_id)
WHERE study = $study
