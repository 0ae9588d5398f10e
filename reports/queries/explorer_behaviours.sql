-- What each model makes of each prompt set, and how small its circuit is.
SELECT
    model_id,
    prompts,
    n_pairs,
    accuracy,
    clean_nats,
    corrupt_nats,
    can_do_it,
    why_refused,
    n_edges,
    n_edges_enough,
    faithfulness_enough,
    n_surely_in,
    cmd_absolute,
    cmd_random
FROM labelled_models
JOIN prompts_in_short USING (model_id)
WHERE study = $study
ORDER BY model_id, prompts
