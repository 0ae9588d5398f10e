-- Do heads repeat each other? One row a model with two heads or more: how many of its pairs are redundant, as in
-- head_similarity.is_redundant.
--
-- named_models.*
-- n_pairs: pairs of heads
-- n_tried: pairs that were ablated together
-- n_redundant: pairs that are redundant; NULL if none was tried
-- n_initially_redundant: of the pairs tried, those that were redundant at the initialisation; NULL without one
-- fraction_redundant: n_redundant divided by n_tried
-- nearest_distance: Jensen-Shannon distance of the two heads that attend most alike, 0..1
-- nearest_pair: the two heads that attend most alike, like `L0H1 and L0H3`
WITH counted AS (
    SELECT
        model_id,
        count(*) AS n_pairs,
        count(is_redundant) AS n_tried,
        sum(is_redundant::INTEGER)::INTEGER AS n_redundant,
        sum(initial_is_redundant::INTEGER)::INTEGER AS n_initially_redundant,
        avg(is_redundant::INTEGER) AS fraction_redundant,
        min(jensen_shannon_distance) AS nearest_distance,
        arg_min(
            head_label(first_layer, first_head) || ' and ' || head_label(second_layer, second_head),
            (jensen_shannon_distance, first_layer, first_head, second_layer, second_head)
        ) FILTER (jensen_shannon_distance IS NOT NULL) AS nearest_pair
    FROM head_similarity
    GROUP BY model_id
)
SELECT
    model_id,
    named_models.* EXCLUDE (model_id),
    counted.* EXCLUDE (model_id)
FROM counted
LEFT JOIN named_models USING (model_id)
ORDER BY name, seed, model_id
