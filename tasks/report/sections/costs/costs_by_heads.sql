-- What a pass of one sequence costs with more and more heads at one d_model, at each length.
SELECT
    n_heads AS heads,
    replace(pass, '_', ' and ') AS pass,
    n_ctx,
    d_model,
    flops_counted / 1e6 AS million_flops,
    1e3 * seconds AS milliseconds,
    seconds / first_value(seconds) OVER fewer AS over_fewest_heads,
    bytes
FROM costs
WHERE study = $study AND axis = 'n_heads'
WINDOW fewer AS (PARTITION BY pass, n_ctx, d_model ORDER BY n_heads)
ORDER BY pass, n_ctx, n_heads
