-- How well the direct path alone predicts the bigrams of the training text; the model that stands for each label.
SELECT
    label AS model,
    unigram_loss_nats,
    bigram_loss_nats,
    direct_loss_nats,
    explained_share,
    correlation,
    gap_bigram_correlation AS correlation_where_the_rest_is_known,
    gap_correlation AS correlation_with_what_the_rest_leaves,
    linearised
FROM labelled_models
JOIN bigrams USING (model_id)
WHERE study = $study AND stands_for_label
ORDER BY labelled_models.n_layers, label
