-- How fast do costs grow? One row a study, size that varies, attention and pass: exponents of that size, fitted to the
-- larger half of what was measured, at least two sizes.
--
-- costs.*
-- n_sizes: sizes that the exponents are fitted to
-- smallest_size: the smallest size fitted to
-- largest_size: the largest size fitted to
-- flops_exponent: slope of the logarithm of counted FLOPs over that of the size; NULL for a single size
-- seconds_exponent: slope of the logarithm of seconds
-- seconds_exponent_low: lower end of its 95 % interval over rounds of timing, by Student's t; NULL of fewer than three
-- seconds_exponent_high: upper end of that interval
-- bytes_exponent: slope of the logarithm of bytes
WITH sizes AS (
    SELECT *, if(axis = 'n_ctx', n_ctx, d_model) AS size
    FROM costs
    WHERE axis IN ('n_ctx', 'd_model')
),
large AS (
    FROM sizes
    WINDOW series AS (PARTITION BY study, axis, attention, pass)
    QUALIFY
        row_number() OVER (PARTITION BY study, axis, attention, pass ORDER BY size DESC)
        <= greatest(2, ceil(count(*) OVER series / 2))
),
rounds AS (
    SELECT study, axis, attention, pass, place, regr_slope(ln(seconds), ln(size)) AS slope
    FROM (
        SELECT * EXCLUDE (seconds), unnest(seconds_by_round) AS seconds, generate_subscripts(seconds_by_round, 1) AS place
        FROM large
    )
    GROUP BY ALL
    HAVING count(*) > 1
),
noise AS (
    SELECT study, axis, attention, pass, ci95(slope) AS ci95 FROM rounds GROUP BY ALL
)
SELECT
    study,
    axis,
    attention,
    pass,
    count(*) AS n_sizes,
    min(size) AS smallest_size,
    max(size) AS largest_size,
    if(n_sizes > 1, regr_slope(ln(flops_counted), ln(size)), NULL) AS flops_exponent,
    if(n_sizes > 1, regr_slope(ln(seconds), ln(size)), NULL) AS seconds_exponent,
    seconds_exponent - any_value(ci95) AS seconds_exponent_low,
    seconds_exponent + any_value(ci95) AS seconds_exponent_high,
    if(n_sizes > 1, regr_slope(ln(bytes), ln(size)), NULL) AS bytes_exponent
FROM large
LEFT JOIN noise USING (study, axis, attention, pass)
GROUP BY study, axis, attention, pass
ORDER BY study, axis DESC, attention, pass
