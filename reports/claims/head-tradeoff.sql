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
-- empty: which number of heads is best is for other seeds to say, and there is one seed
-- evidence: Models
-- changed: 2026-11-28, three head counts don't reach the ends; now from 1 to d_model / 8; the lowest of several losses is too
--   low by chance (of equal models the rule held in 11 %), so the other seeds say now which counts are compared
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
        max(n_heads) OVER same_place AS most,
        n_heads IN (fewest, most) AS at_an_end
    FROM losses
    WHERE loss IS NOT NULL
    WINDOW same_place AS (PARTITION BY seed, configuration)
),
chosen AS (
    SELECT one.seed, one.configuration, one.n_heads, one.at_an_end, one.loss, avg(other.loss) AS loss_elsewhere
    FROM ends AS one
    JOIN ends AS other USING (configuration, n_heads)
    WHERE other.seed <> one.seed AND one.fewest = 1 AND one.most >= one.d_model / 8
    GROUP BY ALL
)
SELECT
    seed,
    configuration,
    arg_min(loss, loss_elsewhere) FILTER (at_an_end) - arg_min(loss, loss_elsewhere) FILTER (NOT at_an_end) AS value
FROM chosen
GROUP BY seed, configuration
