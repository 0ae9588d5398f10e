-- statement: two layers learn in context what one layer with as many heads can't: repeat_gain is higher
-- source: 000
-- over: seeds
-- needs: EXISTS (
--     SELECT 1 FROM cells GROUP BY without_axes(cell, 'n_layers|n_heads'), total_heads
--     HAVING count(DISTINCT n_layers) FILTER (n_layers IN (1, 2)) = 2)
-- lacks: models of one and of two layers with as many heads in all
-- rule: holds if estimate > 0.2
-- unit: nats
-- evidence: In context
SELECT
    seed,
    avg(repeat_gain_nats) FILTER (n_layers = 2) - avg(repeat_gain_nats) FILTER (n_layers = 1) AS value
FROM cells
WHERE study = $study
GROUP BY seed, without_axes(cell, 'n_layers|n_heads'), total_heads
