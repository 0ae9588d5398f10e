-- How well the direct path alone predicts the bigrams of the training text; the model that stands for each label.
SELECT
    label AS model,
    unigram_loss_nats,
    bigram_loss_nats,
    direct_loss_nats,
    explained_share,
    correlation,
    gap_coefficient,
    if(labelled_models.n_layers = 0, 'no heads', NULL) AS gap_coefficient_note,
    linearised
FROM labelled_models
JOIN bigrams USING (model_id)
WHERE study = $study AND stands_for_label
ORDER BY labelled_models.n_layers, label
