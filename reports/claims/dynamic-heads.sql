-- statement: the number of active heads can follow the input: the fewest active at a loss within 1 % of the same model's
--   without gates
-- source: zhang-2022
-- texts: parallel-heads
-- needs: EXISTS (
--     SELECT 1 FROM cells GROUP BY without_axes(cell, 'gates|gate_penalty|gate_rate|active_fraction')
--     HAVING bool_or(gates = 'none') AND bool_or(gates = 'dynamic'))
-- lacks: models with dynamic gates and the same without
-- stages: behaviour
-- rule: holds if estimate < 0.8
-- range: 0 to 1
-- unit: share of heads
-- changed: 2026-11-28, models of different shapes were pooled; now each configuration is decided from its seeds
WITH activity AS (
    SELECT model_id, avg(active_fraction) AS active FROM last_heads GROUP BY model_id
),
members AS (
    SELECT
        seed,
        without_axes(cell, 'seed|gates|gate_penalty|gate_rate|active_fraction') AS configuration,
        gates,
        active,
        validation_loss_nats AS loss
    FROM cells
    LEFT JOIN activity USING (model_id)
    WHERE study = $study
)
SELECT
    gated.seed,
    gated.configuration,
    coalesce(min(active) FILTER (gated.loss <= 1.01 * intact.loss), 1) AS value
FROM members AS gated
JOIN (SELECT seed, configuration, avg(loss) AS loss FROM members WHERE gates = 'none' GROUP BY ALL) AS intact
    USING (seed, configuration)
WHERE gates = 'dynamic' AND active IS NOT NULL AND gated.loss IS NOT NULL AND intact.loss IS NOT NULL
GROUP BY gated.seed, gated.configuration
