-- statement: more heads overfit less: the gap between validation and training loss falls with the number of heads
-- source: parallel-heads, Impacto do Número de Cabeças no Desempenho e Interpretabilidade
-- needs: EXISTS (
--     SELECT 1 FROM cells WHERE n_layers > 0 GROUP BY without_axes(cell, 'n_heads') HAVING count(DISTINCT n_heads) > 1)
-- lacks: models of two head counts or more
-- rule: holds if estimate < 0
-- unit: nats a doubling of heads
-- evidence: Models
-- changed: 2026-11-28, the validation text was another; now both texts are alike and measured alike, for each
--   configuration
SELECT
    seed,
    without_axes(cell, 'seed|n_heads') AS configuration,
    regr_slope(validation_loss_nats - train_loss_nats, log2(n_heads)) AS value
FROM cells
JOIN (SELECT model_id, train_loss_nats FROM evaluations WHERE train_loss_nats IS NOT NULL) USING (model_id)
WHERE study = $study AND n_layers > 0
GROUP BY ALL
HAVING count(DISTINCT n_heads) > 1
