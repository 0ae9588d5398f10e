-- statement: at a given d_model, many narrow heads or few wide ones is a trade-off: the lowest loss is at neither end
-- source: 001, 003
-- over: seeds
-- needs: EXISTS (
--     SELECT 1 FROM cells WHERE n_heads * d_head = d_model AND d_value = d_head AND n_layers > 0
--     GROUP BY without_axes(cell, 'n_heads|d_head|d_value') HAVING count(DISTINCT n_heads) > 2)
-- lacks: models of three head counts or more whose heads share one d_model
-- rule: holds if estimate > 0
-- unit: nats, best end minus best between
-- evidence: Models
WITH losses AS (
    SELECT seed, without_axes(cell, 'n_heads|d_head|d_value') AS place, n_heads, avg(validation_loss_nats) AS loss
    FROM cells
    WHERE study = $study AND n_heads * d_head = d_model AND d_value = d_head AND n_layers > 0
    GROUP BY ALL
),
ends AS (
    SELECT
        *,
        n_heads = min(n_heads) OVER same_place OR n_heads = max(n_heads) OVER same_place AS is_end
    FROM losses
    WHERE loss IS NOT NULL
    WINDOW same_place AS (PARTITION BY seed, place)
)
SELECT seed, min(loss) FILTER (is_end) - min(loss) FILTER (NOT is_end) AS value FROM ends GROUP BY seed, place
