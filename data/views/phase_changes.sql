-- When did a score take off? One row a model and score: the steepest change of its trajectory over ln(1 + tokens),
-- so that the initialisation has a place. Trajectories are smoothed by medians of 3, except at their two ends.
--
-- named_models.*
-- score: prefix_matching, of the head in which it is highest at the last checkpoint, or repeat_gain_nats
-- layer: layer of the head with the score; NULL for repeat_gain_nats
-- head: the head with the score, counted from 0 within its layer; NULL for repeat_gain_nats
-- occurred: whether the score rose by 0.1 or more (prefix_matching) or 0.2 nats or more (repeat_gain_nats); NULL if not measured
-- step: the checkpoint to which the steepest change led; NULL, like the window, if none occurred
-- tokens: tokens seen by the checkpoint to which the steepest change led
-- before: the score at the first checkpoint
-- after: the score at the last checkpoint
-- change: after minus before
-- window_start_tokens: first checkpoint of the stretch around step in which the score rises at least a quarter as fast, tokens
-- window_end_tokens: last checkpoint of that stretch, tokens
-- in_context_learning_share: fraction of the whole fall of in_context_learning_nats that lies inside the window
WITH smallest_changes AS (
    FROM (VALUES ('prefix_matching', 0.1), ('repeat_gain_nats', 0.2)) AS t(score, smallest_change)
),
best_heads AS (
    SELECT model_id, layer, head
    FROM heads
    WHERE prefix_matching IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY model_id ORDER BY step DESC, prefix_matching DESC, layer, head) = 1
),
measured AS (
    SELECT
        model_id, 'prefix_matching' AS score, layer, head, step, tokens,
        prefix_matching AS value, in_context_learning_nats AS learning
    FROM heads
    JOIN best_heads USING (model_id, layer, head)
    JOIN evaluations USING (model_id, step)
    UNION ALL
    SELECT model_id, 'repeat_gain_nats', NULL, NULL, step, tokens, repeat_gain_nats, in_context_learning_nats
    FROM evaluations
),
smoothed AS (
    SELECT
        * EXCLUDE (value, learning),
        lag(step) OVER so_far IS NULL OR lead(step) OVER so_far IS NULL AS at_an_end,
        if(at_an_end, value, median(value) OVER three) AS level,
        if(at_an_end, learning, median(learning) OVER three) AS learning
    FROM measured
    WHERE value IS NOT NULL AND tokens IS NOT NULL
    WINDOW
        so_far AS (PARTITION BY model_id, score ORDER BY step),
        three AS (PARTITION BY model_id, score ORDER BY step ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)
),
progressing AS (
    SELECT
        *,
        first_value(level) OVER trajectory AS before,
        last_value(level) OVER trajectory AS after,
        (level - lag(level) OVER trajectory)
        / nullif(ln(1 + tokens) - ln(1 + lag(tokens) OVER trajectory), 0) AS slope
    FROM smoothed
    WINDOW trajectory AS (
        PARTITION BY model_id, score ORDER BY step ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
    )
),
paced AS (
    SELECT
        *,
        first_value(step) OVER by_slope AS steepest_step,
        first_value(slope) OVER by_slope / 4 AS slow,
        step < steepest_step AND coalesce(slope < slow, true) AS can_start,
        step >= steepest_step AND coalesce(lead(slope) OVER (PARTITION BY model_id, score ORDER BY step) < slow, true)
            AS can_end
    FROM progressing
    WINDOW by_slope AS (PARTITION BY model_id, score ORDER BY slope DESC NULLS LAST, step)
),
changes AS (
    SELECT
        model_id,
        score,
        any_value(layer) AS layer,
        any_value(head) AS head,
        any_value(before) AS before,
        any_value(after) AS after,
        max(steepest_step) AS step,
        max(tokens) FILTER (step = steepest_step) AS tokens,
        max(tokens) FILTER (can_start) AS window_start_tokens,
        min(tokens) FILTER (can_end) AS window_end_tokens,
        arg_max_null(learning, step) FILTER (can_start) AS learning_at_start,
        arg_min_null(learning, step) FILTER (can_end) AS learning_at_end,
        arg_min_null(learning, step) AS first_learning,
        arg_max_null(learning, step) AS last_learning
    FROM paced
    GROUP BY model_id, score
)
SELECT
    named_models.*,
    score,
    layer,
    head,
    after - before >= smallest_change AS occurred,
    if(occurred, step, NULL) AS step,
    if(occurred, changes.tokens, NULL) AS tokens,
    before,
    after,
    after - before AS change,
    if(occurred, window_start_tokens, NULL) AS window_start_tokens,
    if(occurred, window_end_tokens, NULL) AS window_end_tokens,
    if(
        occurred AND last_learning < first_learning,
        (learning_at_end - learning_at_start) / (last_learning - first_learning),
        NULL
    ) AS in_context_learning_share
FROM named_models
CROSS JOIN smallest_changes
LEFT JOIN changes USING (model_id, score)
ORDER BY name, seed, model_id, score
