-- statement: local attention costs O(n), at little loss: FLOPs and seconds grow with an exponent under 1.2, and loss
--   is under 2 % higher than with full attention at as many tokens
-- source: beltagy-2020, 3.1 Attention Pattern
-- texts: parallel-heads
-- needs: (SELECT json_array_length(config, '/costs/n_ctx') > 1 FROM studies WHERE study = $study) AND EXISTS (
--     SELECT 1 FROM cells GROUP BY without_axes(cell, 'attention|attention_window')
--     HAVING bool_or(attention = 'full') AND bool_or(attention = 'local'))
-- lacks: models with local attention and the same with full, and several n_ctx in [costs]
-- rule: holds if estimate > 0
-- unit: margin over the nearer bar
-- evidence: Costs
-- empty: passes were not timed three times or more at several n_ctx
-- changed: 2026-11-28, models of different shapes were pooled; now each configuration is decided from its seeds;
--   2026-11-30, the clock's own noise, now exponents have an interval over rounds of timing
WITH losses AS (
    SELECT
        seed,
        without_axes(cell, 'seed|attention|attention_window') AS configuration,
        avg(validation_loss_nats) FILTER (attention = 'local')
        / avg(validation_loss_nats) FILTER (attention = 'full') - 1 AS increase
    FROM cells
    WHERE study = $study
    GROUP BY ALL
)
SELECT
    seed,
    configuration,
    least(1 - exponent / 1.2, 1 - increase / 0.02) AS value,
    least(1 - highest / 1.2, value) AS low,
    if(value < 1 - increase / 0.02, 1 - lowest / 1.2, value) AS high
FROM losses
CROSS JOIN (
    SELECT
        max(greatest(flops_exponent, seconds_exponent)) AS exponent,
        max(greatest(flops_exponent, seconds_exponent_low)) AS lowest,
        max(greatest(flops_exponent, seconds_exponent_high)) AS highest
    FROM cost_exponents
    WHERE study = $study AND attention = 'local' AND axis = 'n_ctx' AND seconds_exponent_low IS NOT NULL
)
WHERE exponent IS NOT NULL AND increase IS NOT NULL
