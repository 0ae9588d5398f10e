-- What a pass of one sequence costs, where n_ctx or d_model varies.
SELECT
    axis,
    attention,
    pass,
    if(axis = 'n_ctx', n_ctx, d_model) AS size,
    flops_counted AS flops,
    seconds
FROM costs
WHERE study = $study AND axis <> 'n_heads'
ORDER BY axis, attention, pass, size
