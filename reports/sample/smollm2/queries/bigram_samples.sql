SELECT label, labelled_models.n_layers, source, target, n_pairs, log_probability_nats, direct_logit
FROM labelled_models
JOIN bigram_samples USING (model_id)
WHERE study = 'smollm2' AND stands_for_label
ORDER BY labelled_models.n_layers, label, rank
