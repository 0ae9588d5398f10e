-- How many heads can a model do without? One row a model, procedure and order. Heads can be removed at under 1 % more
-- loss if the curve is under 1 % once they are pruned, even if it was higher with fewer. Pruning none costs nothing.
--
-- named_models.*
-- total_heads: heads that there are to remove: those that training removed are none
-- pruning.*
-- n_orders: orders that were tried: several if they are random
-- within_1_percent: most heads that can be removed at under 1 % more loss than the intact model's; of random orders, the mean
-- fraction_within_1_percent: within_1_percent divided by total_heads
-- within_5_percent: most heads that can be removed at under 5 % more loss
-- fraction_within_5_percent: within_5_percent divided by total_heads
WITH orders AS (
    SELECT
        model_id,
        procedure,
        order_method,
        draw,
        coalesce(max(n_pruned) FILTER (relative_increase < 0.01), 0) AS within_1_percent,
        coalesce(max(n_pruned) FILTER (relative_increase < 0.05), 0) AS within_5_percent
    FROM pruning
    WHERE relative_increase IS NOT NULL
    GROUP BY model_id, procedure, order_method, draw
),
heads_there AS (
    SELECT model_id, coalesce(round(max(n_pruned / fraction_pruned))::INTEGER, any_value(total_heads)) AS total_heads
    FROM pruning
    LEFT JOIN models USING (model_id)
    WHERE n_pruned > 0
    GROUP BY model_id
)
SELECT
    model_id,
    name,
    studies,
    seed,
    n_layers,
    total_heads,
    procedure,
    order_method,
    count(*) AS n_orders,
    avg(within_1_percent) AS within_1_percent,
    avg(within_1_percent / total_heads) AS fraction_within_1_percent,
    avg(within_5_percent) AS within_5_percent,
    avg(within_5_percent / total_heads) AS fraction_within_5_percent
FROM orders
JOIN heads_there USING (model_id)
LEFT JOIN named_models USING (model_id)
GROUP BY ALL
ORDER BY name, seed, model_id, procedure, order_method
