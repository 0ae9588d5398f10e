-- statement: some heads come to repeat others: the share of models with a redundant pair exceeds that before training by
--   over 0.5
-- source: michel-2019, 3 Are All Attention Heads Important?
-- texts: parallel-heads
-- needs: total_heads > 1 AND measures($study, 'redundancy')
-- lacks: models of two heads or more, or the stage redundancy
-- rule: holds if estimate > 0.5
-- quantity: share
-- control: the same models before training
-- unit: share of models, trained minus untrained
-- evidence: Redundant pairs
-- changed: 2026-11-28, models of different shapes were pooled, and untrained ones had such pairs, too; now each
--   configuration is decided from its seeds, by how much it exceeds untrained ones
SELECT model_id, n_redundant > 0 AS value, n_initially_redundant > 0 AS control
FROM cells
JOIN redundant_pairs USING (model_id)
WHERE study = $study
