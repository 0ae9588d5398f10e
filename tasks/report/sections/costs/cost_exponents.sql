-- How fast costs grow with n_ctx and d_model.
SELECT
    axis AS grows,
    attention,
    replace(pass, '_', ' and ') AS pass,
    smallest_size AS fitted_from,
    largest_size AS fitted_to,
    flops_exponent,
    seconds_exponent,
    bytes_exponent
FROM cost_exponents
WHERE study = $study
ORDER BY axis DESC, attention, pass
