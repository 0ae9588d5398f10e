-- Pairs of heads by the distance of their attention.
SELECT model_id, first_layer, first_head, second_layer, second_head, jensen_shannon_distance, is_redundant
FROM head_similarity
SEMI JOIN (FROM study_models WHERE study = $study) USING (model_id)
WHERE jensen_shannon_distance IS NOT NULL
ORDER BY model_id, first_layer, first_head, second_layer, second_head
