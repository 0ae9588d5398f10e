-- Can a model do what a prompt set asks, and how small is the circuit that does it? One row a model and prompt set, last checkpoint.
--
-- named_models.*
-- prompts: the prompt set
-- n_pairs: prompt_scores.n_pairs
-- accuracy: prompt_scores.accuracy
-- clean_nats: prompt_scores.clean_nats
-- corrupt_nats: prompt_scores.corrupt_nats
-- can_do_it: prompt_scores.can_do_it
-- why_refused: prompt_scores.why_refused
-- n_edges_enough: prompt_circuits.n_edges_enough; NULL if the model can't do it
-- n_edges: prompt_circuits.n_edges
-- faithfulness_enough: prompt_circuits.faithfulness_enough
-- n_surely_in: prompt_circuits.n_surely_in
-- cmd_absolute: prompt_circuits.cmd_absolute
-- cmd_random: prompt_circuits.cmd_random
SELECT
    named_models.*,
    prompts,
    n_pairs,
    accuracy,
    clean_nats,
    corrupt_nats,
    can_do_it,
    why_refused,
    n_edges_enough,
    n_edges,
    faithfulness_enough,
    n_surely_in,
    cmd_absolute,
    cmd_random
FROM (FROM prompt_scores QUALIFY step = max(step) OVER (PARTITION BY model_id, prompts))
LEFT JOIN prompt_circuits USING (model_id, prompts)
JOIN named_models USING (model_id)
ORDER BY prompts, named_models.name, named_models.seed, model_id
