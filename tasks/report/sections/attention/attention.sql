-- Attention on the sample passage, by the best induction and the best previous-token head of the model that stands for the best kind, if it has such heads.
WITH best AS (
    SELECT typical_model_id AS model_id, label
    FROM model_groups
    WHERE study = $study AND typical_model_id IN (SELECT model_id FROM attention_samples)
    ORDER BY place
    LIMIT 1
),
chosen AS (
    SELECT 'induction' AS role, best.label, model_id, best_induction_head AS head_label
    FROM best JOIN model_summary USING (model_id)
    UNION ALL
    SELECT 'previous token', best.label, model_id, best_previous_token_head
    FROM best JOIN model_summary USING (model_id)
)
SELECT role, label, head_label, query, key, query_token, key_token, weight
FROM chosen
JOIN attention_samples USING (model_id)
SEMI JOIN head_roles AS roles ON (roles.model_id, roles.label, roles.role) = (chosen.model_id, chosen.head_label, chosen.role)
WHERE head_label = head_label(layer, head)
ORDER BY role, query, key
