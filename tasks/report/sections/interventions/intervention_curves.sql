-- The best head's score at every checkpoint of each model to which something was done, and of its base.
WITH pairs AS (
    SELECT
        what,
        n_layers,
        seed,
        from_tokens,
        until_tokens,
        model_id,
        unnest([model_id, base_model_id]) AS of_model,
        unnest([false, true]) AS is_base
    FROM intervention_effects
    WHERE study = $study
)
SELECT
    what,
    n_layers,
    pairs.seed,
    pairs.model_id,
    is_base,
    from_tokens,
    until_tokens,
    evaluations.tokens,
    max(induction_random_period) AS score
FROM pairs
JOIN heads ON heads.model_id = pairs.of_model
JOIN evaluations ON (evaluations.model_id, evaluations.step) = (heads.model_id, heads.step)
WHERE evaluations.tokens > 0
GROUP BY ALL
ORDER BY n_layers DESC, what, pairs.seed, model_id, is_base, evaluations.tokens
