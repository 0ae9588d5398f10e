-- What does pruning cost? One row a study, label, procedure, order and number of heads pruned; means and error bars are
-- over the models, one for each seed; of random orders, each model counts with the mean over its draws.
--
-- labelled_models.*
-- pruning.*
-- n_models: models of which so many heads were pruned
-- n_curves: curves of these models: more than n_models where orders are random
-- loss_nats_mean: validation loss, nats per token
-- relative_increase_mean: rise of the loss over the intact model's, as a fraction of that
-- relative_increase_lowest: the lowest relative_increase of any curve
-- relative_increase_highest: the highest relative_increase of any curve
WITH by_model AS (
    SELECT
        model_id,
        procedure,
        order_method,
        n_pruned,
        any_value(fraction_pruned) AS fraction_pruned,
        count(*) AS n_curves,
        avg(loss_nats) AS loss_nats,
        avg(relative_increase) AS relative_increase,
        min(relative_increase) AS lowest,
        max(relative_increase) AS highest
    FROM pruning
    GROUP BY model_id, procedure, order_method, n_pruned
)
SELECT
    study,
    label,
    any_value(n_layers) AS n_layers,
    procedure,
    order_method,
    n_pruned,
    any_value(fraction_pruned) AS fraction_pruned,
    count(*) AS n_models,
    sum(n_curves)::BIGINT AS n_curves,
    avg(loss_nats) AS loss_nats_mean,
    ci95(loss_nats) AS loss_nats_ci95,
    avg(relative_increase) AS relative_increase_mean,
    ci95(relative_increase) AS relative_increase_ci95,
    min(lowest) AS relative_increase_lowest,
    max(highest) AS relative_increase_highest
FROM labelled_models
JOIN by_model USING (model_id)
GROUP BY study, label, procedure, order_method, n_pruned
ORDER BY study, label, procedure, order_method, n_pruned
