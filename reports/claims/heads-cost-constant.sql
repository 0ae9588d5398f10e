-- statement: at a given d_model the number of heads doesn't change what a pass costs, however long the sequence: 8 heads take
--   as many FLOPs of matrix products as 1, and under 1.5 times as long, up to 8 d_model tokens or more
-- source: vaswani-2017, 3.2.2 Multi-Head Attention
-- texts: multi-head, parallel-heads
-- needs: (
--     SELECT list_has_all(json_extract(config, '/costs/n_heads')::INTEGER[], [1, 8]) FROM studies WHERE study = $study)
-- lacks: 1 and 8 among the n_heads of [costs]
-- rule: holds if every configuration < 1.5
-- unit: times the seconds
-- empty: no sequences of 8 d_model tokens or more, which show what scores and softmaxes of each head cost, were timed three
--   times or more
-- changed: 2026-11-28, at 128 tokens alone nothing shows of the scores, softmaxes and biases that each head has of its own;
--   2026-11-30, the clock's own noise, now ratios round by round have an interval, whose whole must be below the bar, or above
-- evidence: Costs
WITH passes AS (
    SELECT
        pass,
        n_ctx,
        d_model,
        max(seconds) FILTER (n_heads = 8) / max(seconds) FILTER (n_heads = 1) AS seconds_ratio,
        max(flops_counted) FILTER (n_heads = 8) / max(flops_counted) FILTER (n_heads = 1) AS flops_ratio,
        any_value(seconds_by_round) FILTER (n_heads = 8) AS of_eight,
        any_value(seconds_by_round) FILTER (n_heads = 1) AS of_one
    FROM costs
    WHERE study = $study AND axis = 'n_heads' AND attention = 'full' AND len(seconds_by_round) >= 3
    GROUP BY pass, n_ctx, d_model
    HAVING seconds_ratio IS NOT NULL AND flops_ratio IS NOT NULL
    QUALIFY max(n_ctx) OVER (PARTITION BY d_model) >= 8 * d_model
),
rounds AS (
    SELECT pass, n_ctx, d_model, ci95(ln(eight / one)) AS noise
    FROM (SELECT pass, n_ctx, d_model, unnest(of_eight) AS eight, unnest(of_one) AS one FROM passes)
    GROUP BY ALL
)
SELECT
    greatest(seconds_ratio, if(flops_ratio = 1, 0, 1.5 * greatest(flops_ratio, 1 / flops_ratio))) AS value,
    if(value > seconds_ratio, value, value * exp(-noise)) AS low,
    if(value > seconds_ratio, value, value * exp(noise)) AS high
FROM passes
LEFT JOIN rounds USING (pass, n_ctx, d_model)
