-- When does the circuit of a behaviour form? One row a model with several checkpoints, prompt set and what is followed over them: the
-- model's own difference between the prompts, what of it the last checkpoint's circuit makes, and the score of each of its edges.
--
-- named_models.*
-- prompts: the prompt set
-- followed: the model, its circuit, or an edge
-- writer: of an edge, who writes [node]; NULL of others
-- reader: of an edge, who reads [node]
-- port: of an edge, Q, K or V of a head; in for other readers
-- last_nats: its value at the last checkpoint
-- below_half_tokens: tokens seen by the last checkpoint at which it is less than half of that; NULL if it never is
-- half_tokens: tokens seen by the first checkpoint from which on it is at least half of that
-- could_tokens: tokens seen by the first checkpoint from which on the model is shown to do what the set asks
-- phase_start_tokens: phase_changes.window_start_tokens, of prefix_matching; NULL unless it rises abruptly
-- phase_end_tokens: phase_changes.window_end_tokens, of prefix_matching
WITH followed AS (
    SELECT model_id, prompts, step, 'the model' AS followed, NULL AS writer, NULL AS reader, NULL AS port, difference_nats AS nats
    FROM prompt_scores
    SEMI JOIN circuit_checkpoints USING (model_id, prompts)
    UNION ALL
    SELECT model_id, prompts, step, 'its circuit', NULL, NULL, NULL, circuit_nats
    FROM circuit_checkpoints
    UNION ALL
    SELECT model_id, prompts, step, 'an edge', writer, reader, port, score_nats
    FROM edge_checkpoints
),
measured AS (
    SELECT
        followed.*,
        tokens,
        last_value(nats) OVER (
            PARTITION BY model_id, prompts, followed, writer, reader, port
            ORDER BY step ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ) AS last_nats,
        nats / nullif(last_nats, 0) < 0.5 AS is_below
    FROM followed
    JOIN evaluations USING (model_id, step)
),
halves AS (
    SELECT
        model_id,
        prompts,
        followed,
        writer,
        reader,
        port,
        last_nats,
        max(tokens) FILTER (is_below) AS below_half_tokens,
        list(tokens ORDER BY tokens) AS all_tokens
    FROM measured
    GROUP BY ALL
),
could AS (
    SELECT model_id, prompts, min(tokens) AS could_tokens
    FROM (
        FROM prompt_scores
        JOIN evaluations USING (model_id, step)
        QUALIFY bool_and(coalesce(can_do_it, false)) OVER (
            PARTITION BY model_id, prompts ORDER BY step ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        )
    )
    GROUP BY ALL
)
SELECT
    named_models.*,
    prompts,
    followed,
    writer,
    reader,
    port,
    last_nats,
    below_half_tokens,
    list_min(list_filter(all_tokens, lambda seen: seen > coalesce(below_half_tokens, -1))) AS half_tokens,
    could_tokens,
    window_start_tokens AS phase_start_tokens,
    window_end_tokens AS phase_end_tokens
FROM halves
JOIN named_models USING (model_id)
LEFT JOIN could USING (model_id, prompts)
LEFT JOIN (FROM phase_changes WHERE score = 'prefix_matching' AND kind = 'abrupt') AS changes USING (model_id)
ORDER BY prompts, named_models.name, named_models.seed, model_id, followed = 'an edge', followed DESC, abs(last_nats) DESC, writer, reader, port
