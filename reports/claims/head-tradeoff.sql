-- statement: at a given d_model, many narrow heads or few wide ones is a trade-off: the lowest loss is at neither end
-- source: vaswani-2017, 6.2 Model Variations
-- texts: multi-head, parallel-heads
-- needs: EXISTS (
--     SELECT 1 FROM cells WHERE n_heads * d_head = d_model AND d_value = d_head AND n_layers > 0
--     GROUP BY without_axes(cell, 'n_heads|d_head|d_value'), d_model
--     HAVING count(DISTINCT n_heads) > 2 AND min(n_heads) = 1 AND max(n_heads) >= d_model / 8)
-- lacks: models of three head counts or more that share one d_model, from 1 head to heads of width 8
-- rule: holds if estimate > 0
-- unit: nats, best end minus best between
-- evidence: Models
-- changed: 2026-11-28, three head counts don't reach the ends; now from 1 to d_model / 8
WITH losses AS (
    SELECT
        seed,
        without_axes(cell, 'seed|n_heads|d_head|d_value') AS configuration,
        n_heads,
        d_model,
        avg(validation_loss_nats) AS loss
    FROM cells
    WHERE study = $study AND n_heads * d_head = d_model AND d_value = d_head AND n_layers > 0
    GROUP BY ALL
),
ends AS (
    SELECT
        *,
        min(n_heads) OVER same_place AS fewest,
        max(n_heads) OVER same_place AS most
    FROM losses
    WHERE loss IS NOT NULL
    WINDOW same_place AS (PARTITION BY seed, configuration)
)
SELECT
    seed,
    configuration,
    min(loss) FILTER (n_heads IN (fewest, most)) - min(loss) FILTER (n_heads NOT IN (fewest, most)) AS value
FROM ends
WHERE fewest = 1 AND most >= d_model / 8
GROUP BY seed, configuration
