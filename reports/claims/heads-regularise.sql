-- statement: more heads overfit less: where a text is read three times or more, the gap between validation and training
--   loss falls with the number of heads
-- source: parallel-heads, Impacto do Número de Cabeças no Desempenho e Interpretabilidade
-- needs: EXISTS (
--     SELECT 1 FROM cells LEFT JOIN corpora USING (corpus_id)
--     WHERE n_layers > 0 AND coalesce(cells.tokens >= 3 * train_tokens, true)
--     GROUP BY without_axes(cell, 'n_heads') HAVING count(DISTINCT n_heads) > 1)
-- lacks: models of two head counts or more that read their text three times or more
-- rule: holds if estimate < 0
-- unit: nats a doubling of heads
-- evidence: Models
-- changed: 2026-11-28, the validation text was another, and was not yet overfitted; now both texts are alike and measured
--   alike, for each configuration, after several passes
SELECT
    seed,
    without_axes(cell, 'seed|n_heads') AS configuration,
    regr_slope(validation_loss_nats - train_loss_nats, log2(n_heads)) AS value
FROM cells
JOIN (SELECT model_id, train_loss_nats FROM evaluations WHERE train_loss_nats IS NOT NULL) USING (model_id)
LEFT JOIN corpora USING (corpus_id)
WHERE study = $study AND n_layers > 0 AND coalesce(cells.tokens >= 3 * train_tokens, true)
GROUP BY ALL
HAVING count(DISTINCT n_heads) > 1
