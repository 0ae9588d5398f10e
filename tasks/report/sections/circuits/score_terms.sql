-- What the scores of each head of a later layer are made of, in the model that stands for each label.
SELECT
    label,
    head_label(layer, head) AS head_label,
    composition,
    query_source,
    key_source,
    share
FROM labelled_models
JOIN last_score_terms USING (model_id)
WHERE study = $study AND stands_for_label AND layer > 0
ORDER BY label, layer, head, query_source, key_source
