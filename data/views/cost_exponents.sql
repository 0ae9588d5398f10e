-- How fast do costs grow? One row a study, size that varies, attention and pass: exponents of that size, fitted to the
-- larger half of what was measured, at least two sizes.
--
-- costs.*
-- n_sizes: sizes that the exponents are fitted to
-- smallest_size: the smallest size fitted to
-- largest_size: the largest size fitted to
-- flops_exponent: slope of the logarithm of counted FLOPs over that of the size; NULL for a single size
-- seconds_exponent: slope of the logarithm of seconds
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
    if(n_sizes > 1, regr_slope(ln(bytes), ln(size)), NULL) AS bytes_exponent
FROM large
GROUP BY study, axis, attention, pass
ORDER BY study, axis DESC, attention, pass
