-- What the loss is with more and more heads pruned, means over seeds and, of random orders, draws.
SELECT
    label,
    procedure,
    order_method,
    stands_for_procedure,
    n_pruned,
    pruning_curve.n_models,
    n_curves,
    relative_increase_mean,
    relative_increase_ci95,
    relative_increase_lowest,
    relative_increase_highest
FROM pruning_curve
JOIN prunable_heads_by_group USING (study, label, procedure, order_method)
WHERE study = $study AND relative_increase_mean IS NOT NULL
ORDER BY label, procedure, order_method, n_pruned
