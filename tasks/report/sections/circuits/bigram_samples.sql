-- The most frequent bigrams of the training text, and what the direct path makes of them; the model that stands for each label.
SELECT label, labelled_models.n_layers, source, target, n_pairs, log_probability_nats, direct_logit
FROM labelled_models
JOIN bigram_samples USING (model_id)
WHERE study = $study AND stands_for_label
ORDER BY labelled_models.n_layers, label, rank
