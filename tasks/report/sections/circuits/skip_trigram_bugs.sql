-- The three strongest bugs of each head of that model, and what forces each.
SELECT
    labelled_models.label AS model,
    skip_trigram_summary.label AS head,
    skip_trigram AS bug,
    corpus_probability,
    corpus_probability / output_probability AS times_as_often_as_anywhere,
    right_output AS forced_by,
    right_destination AS and_by
FROM labelled_models
JOIN skip_trigram_summary USING (model_id)
WHERE study = $study AND verdict = 'bug' AND model_id = (
    SELECT typical_model_id
    FROM model_groups
    WHERE study = $study
    ORDER BY typical_model_id NOT IN (SELECT model_id FROM skip_trigrams), n_layers <> 1, place
    LIMIT 1
)
QUALIFY row_number() OVER (PARTITION BY layer, skip_trigram_summary.head ORDER BY rank) <= 3
ORDER BY layer, skip_trigram_summary.head, rank
