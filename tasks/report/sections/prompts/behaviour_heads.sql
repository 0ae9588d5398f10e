-- The heads and feed-forward layers that carry each behaviour, of the model that stands for each label: the largest effects first.
SELECT prompts, label AS model, node, role, share, restored_share AS put_back, sentence AS in_words
FROM labelled_models
JOIN circuit_heads USING (model_id)
WHERE study = $study AND stands_for_label AND (abs(share) >= 0.05 OR abs(restored_share) >= 0.05)
ORDER BY prompts, labelled_models.n_layers DESC, label, abs(share) DESC, node
