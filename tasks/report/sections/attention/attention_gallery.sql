-- Attention on that passage, by the head of that model with the highest score of each kind, if it is high enough to mean something, and by the two most alike, if they are alike.
WITH best AS (
    SELECT typical_model_id AS model_id, label
    FROM model_groups
    WHERE study = $study AND typical_model_id IN (SELECT model_id FROM attention_samples)
    ORDER BY place
    LIMIT 1
),
scores AS (
    SELECT 1 AS place, 'duplicate_token' AS score, layer, head, duplicate_token AS value
    FROM last_heads SEMI JOIN best USING (model_id)
    WHERE duplicate_token >= duplicate_token_attention()
    UNION ALL
    SELECT 2, 'copying_eigenvalues', layer, head, copying_eigenvalues
    FROM last_heads SEMI JOIN best USING (model_id)
    WHERE copying_eigenvalues > clear_eigenvalues()
    UNION ALL
    SELECT 3, method, layer, head, importance.score
    FROM importance SEMI JOIN best USING (model_id)
    WHERE method = 'ablation_mean'
),
highest AS (
    FROM scores
    WHERE value IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY score ORDER BY value DESC, layer, head) = 1
),
nearest AS (
    FROM head_similarity SEMI JOIN best USING (model_id)
    WHERE is_redundant OR jensen_shannon_distance < 0.5  -- alike rather than not
    ORDER BY is_redundant DESC NULLS LAST, jensen_shannon_distance, first_layer, first_head, second_layer, second_head
    LIMIT 1
),
chosen AS (
    FROM highest
    UNION ALL
    SELECT 4, if(is_redundant, 'redundant', 'most alike'), first_layer, first_head, jensen_shannon_distance FROM nearest
    UNION ALL
    SELECT 5, if(is_redundant, 'redundant', 'most alike'), second_layer, second_head, jensen_shannon_distance FROM nearest
)
SELECT
    label,
    place,
    score,
    head_label(layer, head) AS head_label,
    value,
    query,
    key,
    query_token,
    weight
FROM best
JOIN attention_samples USING (model_id)
JOIN chosen USING (layer, head)
ORDER BY place, query, key
