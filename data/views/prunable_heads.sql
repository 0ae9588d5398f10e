-- How many heads can a model do without? One row a model, procedure and order. Heads can go at under 1 % more loss if
-- the curve is under 1 % once they are pruned, even if it was higher with fewer. To prune none costs nothing.
--
-- model_id: models.model_id
-- name: the model's short name, like 2L4H
-- studies: the studies that the model belongs to
-- seed: of weights and batches
-- n_layers: layers of the model
-- total_heads: heads in all layers
-- procedure: pruning.procedure
-- order_method: pruning.order_method
-- n_orders: orders that were tried: several if they are random
-- within_1_percent: most heads that can go at under 1 % more loss than the intact model's; of random orders, the mean
-- fraction_within_1_percent: the same over all heads
-- within_5_percent: most heads that can go at under 5 % more loss
-- fraction_within_5_percent: the same over all heads
WITH memberships AS (
    SELECT model_id, list(study ORDER BY study) AS studies FROM study_models GROUP BY model_id
),
orders AS (
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
)
SELECT
    model_id,
    any_value(name) AS name,
    any_value(studies) AS studies,
    any_value(seed) AS seed,
    any_value(n_layers) AS n_layers,
    any_value(total_heads) AS total_heads,
    procedure,
    order_method,
    count(*) AS n_orders,
    avg(within_1_percent) AS within_1_percent,
    avg(within_1_percent / total_heads) AS fraction_within_1_percent,
    avg(within_5_percent) AS within_5_percent,
    avg(within_5_percent / total_heads) AS fraction_within_5_percent
FROM orders
LEFT JOIN models USING (model_id)
LEFT JOIN memberships USING (model_id)
GROUP BY model_id, procedure, order_method
ORDER BY any_value(name), any_value(seed), model_id, procedure, order_method
