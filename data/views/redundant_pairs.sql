-- Do heads repeat each other? One row a model with two heads or more: how many of its pairs are redundant, as in
-- head_similarity.is_redundant.
--
-- model_id: models.model_id
-- name: the model's short name, like 2L4H
-- studies: the studies that the model belongs to
-- seed: of weights and batches
-- n_layers: layers of the model
-- n_pairs: pairs of heads
-- n_tried: pairs that were ablated together
-- n_redundant: pairs that are redundant; NULL if none was tried
-- fraction_redundant: n_redundant over n_tried
-- nearest_distance: Jensen-Shannon distance of the two heads that attend most alike, 0..1
-- nearest_pair: these two, like `L0H1 and L0H3`
WITH memberships AS (
    SELECT model_id, list(study ORDER BY study) AS studies FROM study_models GROUP BY model_id
),
counted AS (
    SELECT
        model_id,
        count(*) AS n_pairs,
        count(is_redundant) AS n_tried,
        sum(is_redundant::INTEGER)::INTEGER AS n_redundant,
        avg(is_redundant::INTEGER) AS fraction_redundant,
        min(jensen_shannon_distance) AS nearest_distance,
        arg_min(
            'L' || first_layer || 'H' || first_head || ' and L' || second_layer || 'H' || second_head,
            (jensen_shannon_distance, first_layer, first_head, second_layer, second_head)
        ) FILTER (jensen_shannon_distance IS NOT NULL) AS nearest_pair
    FROM head_similarity
    GROUP BY model_id
)
SELECT
    model_id,
    name,
    studies,
    seed,
    n_layers,
    n_pairs,
    n_tried,
    n_redundant,
    fraction_redundant,
    nearest_distance,
    nearest_pair
FROM counted
LEFT JOIN models USING (model_id)
LEFT JOIN memberships USING (model_id)
ORDER BY name, seed, model_id
