-- The heads and feed-forward layers that carry each behaviour, of the model that stands for each label: the largest effects first,
-- twelve in all, or four of each set; circuit_heads has all.
SELECT prompts, label AS model, node, role, share, restored_share AS put_back, sentence AS in_words
FROM labelled_models
JOIN circuit_heads USING (model_id)
WHERE study = $study AND stands_for_label AND (abs(share) >= 0.05 OR abs(restored_share) >= 0.05)
QUALIFY row_number() OVER (PARTITION BY prompts, label ORDER BY abs(share) DESC, node) <= greatest(
    4, 12 // (SELECT count(DISTINCT prompts) FROM circuit_heads JOIN labelled_models USING (model_id) WHERE study = $study)
)
ORDER BY prompts, labelled_models.n_layers DESC, label, abs(share) DESC, node
