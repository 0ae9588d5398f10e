-- statement: more heads overfit less: the gap between validation and training loss falls with the number of heads
-- source: 003
-- over: seeds
-- needs: EXISTS (
--     SELECT 1 FROM cells WHERE n_layers > 0 GROUP BY without_axes(cell, 'n_heads') HAVING count(DISTINCT n_heads) > 1)
-- lacks: models of two head counts or more
-- rule: holds if estimate < 0
-- unit: nats a doubling of heads
-- evidence: Models
SELECT seed, regr_slope(validation_loss_nats - train_loss_nats, log2(n_heads)) AS value
FROM cells
JOIN (SELECT model_id, train_loss_nats FROM evaluations) USING (model_id)
WHERE study = $study AND n_layers > 0 AND validation_loss_nats - train_loss_nats IS NOT NULL
GROUP BY seed, without_axes(cell, 'n_heads')
HAVING count(DISTINCT n_heads) > 1
