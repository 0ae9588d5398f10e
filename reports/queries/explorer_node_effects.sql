-- How much of the difference between prompts each head and feed-forward layer is worth, patched both ways; means over pairs.
-- Of those that carry a fiftieth or more, a sentence.
SELECT
    model_id,
    prompts,
    node,
    effect_nats,
    restored_nats,
    node_effects.share,
    node_effects.restored_share,
    if(greatest(abs(node_effects.share), abs(node_effects.restored_share)) >= 0.02, sentence, NULL) AS sentence
FROM labelled_models
JOIN node_effects USING (model_id)
LEFT JOIN (SELECT model_id, prompts, node, sentence FROM circuit_heads) USING (model_id, prompts, node)
WHERE study = $study
ORDER BY model_id, prompts, node
