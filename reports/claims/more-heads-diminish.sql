-- statement: more heads a layer help, with diminishing returns: from 1 to 8 heads a layer loss falls, and from 1 to 2 by
--   more than from 4 to 8
-- source: parallel-heads, Impacto do Número de Cabeças no Desempenho e Interpretabilidade
-- needs: EXISTS (
--     SELECT 1 FROM cells WHERE n_layers > 0 GROUP BY without_axes(cell, 'n_heads')
--     HAVING count(DISTINCT n_heads) FILTER (n_heads IN (1, 2, 4, 8)) = 4)
-- lacks: models of 1, 2, 4 and 8 heads a layer at one d_model
-- rule: holds if estimate > 0
-- unit: nats, first gain minus last or, if less, the whole gain
-- evidence: Models
-- changed: 2026-11-28, models of different shapes were pooled; now each configuration is decided from its seeds
WITH losses AS (
    SELECT
        seed,
        without_axes(cell, 'seed|n_heads') AS configuration,
        max(validation_loss_nats) FILTER (n_heads = 1) AS of_1,
        max(validation_loss_nats) FILTER (n_heads = 2) AS of_2,
        max(validation_loss_nats) FILTER (n_heads = 4) AS of_4,
        max(validation_loss_nats) FILTER (n_heads = 8) AS of_8
    FROM cells
    WHERE study = $study AND n_layers > 0
    GROUP BY ALL
)
SELECT seed, configuration, least((of_1 - of_2) - (of_4 - of_8), of_1 - of_8) AS value
FROM losses
WHERE of_1 + of_2 + of_4 + of_8 IS NOT NULL
