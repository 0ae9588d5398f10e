-- How much of the difference between prompts each head and feed-forward layer is worth, patched both ways; means over pairs.
SELECT model_id, prompts, node, effect_nats, restored_nats, share, restored_share
FROM labelled_models
JOIN node_effects USING (model_id)
WHERE study = $study
ORDER BY model_id, prompts, node
