-- Attention on that passage summed up over heads and layers, at the last layer of the model that stands for the best kind that has it.
WITH best AS (
    SELECT typical_model_id AS model_id, label
    FROM model_groups
    WHERE study = $study AND typical_model_id IN (SELECT model_id FROM attention_aggregates)
    ORDER BY place
    LIMIT 1
)
SELECT label, method, layer, query, key, query_token, key_token, weight
FROM best
JOIN attention_aggregates USING (model_id)
QUALIFY layer = max(layer) OVER ()
ORDER BY list_position(['mean', 'rollout', 'flow'], method), query, key
