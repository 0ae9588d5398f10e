-- The strongest skip-trigram of each head's four strongest sources; the best model with one layer or, without one, with heads.
SELECT
    labelled_models.label AS model,
    skip_trigram_summary.label AS head,
    skip_trigram,
    qk_effect,
    ov_effect,
    corpus_probability,
    corpus_probability / output_probability AS times_as_often_as_anywhere,
    verdict
FROM labelled_models
JOIN skip_trigram_summary USING (model_id)
WHERE study = $study AND source_rank < 4 AND rank_of_source = 0 AND model_id = (
    SELECT typical_model_id
    FROM model_groups
    WHERE study = $study
    ORDER BY typical_model_id NOT IN (SELECT model_id FROM skip_trigrams), n_layers <> 1, place
    LIMIT 1
)
ORDER BY layer, skip_trigram_summary.head, rank
