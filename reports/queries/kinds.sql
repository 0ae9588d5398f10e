-- The kinds of models of a study and their settings, by which they are matched with those of another run or study.
WITH axes AS (
    SELECT coalesce(list(DISTINCT regexp_extract(setting, '[a-z_]+')), []) AS axes  -- one model alone has none
    FROM (SELECT unnest(regexp_extract_all(cell, '[a-z_]+=')) AS setting FROM study_models WHERE study = $study)
)
SELECT
    label,
    axes,
    name,
    models.* EXCLUDE (
        model_id, corpus_id, name, n_heads, total_heads, heads_left, seed, vocabulary, parameters, steps, seconds,
        tokens_per_second, final_train_loss_nats
    )
FROM labelled_models
JOIN models USING (model_id), axes
WHERE study = $study AND stands_for_label
ORDER BY label
