-- statement: how many heads are active can follow the input: fewest active at loss within 1 % of the same model
--   without gates
-- source: 003
-- over: seeds
-- needs: EXISTS (
--     SELECT 1 FROM cells GROUP BY without_axes(cell, 'gates|gate_penalty|gate_rate|active_fraction')
--     HAVING bool_or(gates = 'none') AND bool_or(gates = 'dynamic'))
-- lacks: models with dynamic gates and the same without
-- rule: holds if estimate < 0.8
-- unit: share of heads
WITH last_heads AS (
    FROM heads QUALIFY step = max(step) OVER (PARTITION BY model_id)
),
activity AS (
    SELECT model_id, avg(active_fraction) AS active FROM last_heads GROUP BY model_id
),
members AS (
    SELECT
        models.seed,
        without_axes(cell, 'gates|gate_penalty|gate_rate|active_fraction') AS place,
        gates,
        active,
        validation_loss_nats AS loss
    FROM study_models
    JOIN models USING (model_id)
    JOIN model_summary USING (model_id)
    LEFT JOIN activity USING (model_id)
    WHERE study = $study
),
fewest AS (
    SELECT gated.seed, coalesce(min(active) FILTER (gated.loss <= 1.01 * intact.loss), 1) AS active
    FROM members AS gated
    JOIN (SELECT seed, place, avg(loss) AS loss FROM members WHERE gates = 'none' GROUP BY ALL) AS intact
        USING (seed, place)
    WHERE gates = 'dynamic' AND active IS NOT NULL AND gated.loss IS NOT NULL AND intact.loss IS NOT NULL
    GROUP BY gated.seed, place
),
by_seed AS (
    SELECT seed, avg(active) AS active FROM fewest GROUP BY seed
)
SELECT
    avg(active) AS estimate,
    avg(active) - ci95(active) AS ci_low,
    avg(active) + ci95(active) AS ci_high,
    count(active) AS n
FROM by_seed
