-- statement: two layers learn in context what one layer with as many heads, from as many tokens, doesn't:
--   repeat_gain is higher by over 0.2 nats
-- source: elhage-2021, Two-Layer Attention-Only Transformers
-- texts: composition
-- needs: EXISTS (
--     SELECT 1 FROM cells GROUP BY without_axes(cell, 'n_layers|n_heads'), total_heads
--     HAVING count(DISTINCT n_layers) FILTER (n_layers IN (1, 2)) = 2)
-- lacks: models of one and of two layers with as many heads in all
-- rule: holds if estimate > 0.2
-- unit: nats
-- evidence: In context
-- changed: 2026-11-28, models of different shapes were pooled; now each configuration is decided from its seeds
SELECT
    seed,
    concat_ws(' ', nullif(without_axes(cell, 'seed|n_layers|n_heads'), ''), 'total_heads=' || total_heads) AS configuration,
    avg(repeat_gain_nats) FILTER (n_layers = 2) - avg(repeat_gain_nats) FILTER (n_layers = 1) AS value
FROM cells
WHERE study = $study
GROUP BY ALL
