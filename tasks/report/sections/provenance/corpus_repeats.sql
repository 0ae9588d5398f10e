-- How much of each text of the study repeats what came shortly before, by the length of context: what induction can predict.
SELECT corpora.source, context, token_share, pair_share, beyond_bigrams_share
FROM corpus_repeats
JOIN corpora USING (corpus_id)
WHERE corpus_id IN (SELECT corpus_id FROM study_models JOIN models USING (model_id) WHERE study = $study)
    AND context <= (SELECT max(n_ctx) FROM study_models JOIN models USING (model_id) WHERE study = $study)
ORDER BY source, corpora.corpus_id, context
