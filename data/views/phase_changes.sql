-- When did a score take off, and was it abrupt? One row a model and score. Its steepest part, between two checkpoints, is
-- found on the trajectory over ln(tokens), smoothed by medians of 3 except at its two ends; the initialisation has no
-- place on that axis. Whether it was abrupt is told by the tokens that the middle third of the rise takes on it, however
-- long training goes on: what rises in proportion to tokens takes a doubling of them.
--
-- named_models.*
-- score: prefix_matching, of the head in which it is highest at the last checkpoint, or repeat_gain_nats
-- layer: layer of the head with the score; NULL for repeat_gain_nats
-- head: the head with the score, counted from 0 within its layer; NULL for repeat_gain_nats
-- kind: none: it rose by less than 0.1 (prefix_matching) or 0.2 nats (repeat_gain_nats), or not significantly at 5 %. abrupt: tokens_factor is under 2.3. gradual: it is not. unresolved: it rose, but checkpoints are too few to tell how (tokens grow by a factor of over 1.6 between those where the middle third begins or ends), or errors too large. NULL if not measured
-- before: the score at the first checkpoint
-- after: the score at the last checkpoint
-- change: after minus before
-- change_sem: standard error of change, from those of both scores, taken as independent: if anything too large, as errors that they share cancel
-- tokens_factor: by what factor tokens grew while the score went through the middle third of its change, from 1.645 change_sem below it (the last time) to as much above it (the first time); straight over ln(tokens) between checkpoints. NULL if the errors exceed the thirds, or it began before the first trained checkpoint
-- step: the checkpoint to which the steepest change led; NULL, like the window, unless abrupt
-- tokens: tokens seen by the checkpoint to which the steepest change led
-- window_start_tokens: first checkpoint of the steepest part, the stretch around step in which the score rises at least a quarter as fast, tokens
-- window_end_tokens: last checkpoint of that stretch, tokens
-- has_ended: whether the window ends before the last checkpoint
-- in_context_learning_share: fraction of the whole fall of in_context_learning_nats that lies inside the window, 0..1: none of it if the loss rose there, all of it if it rose elsewhere
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
        prefix_matching AS value, prefix_matching_sem AS sem, in_context_learning_nats AS learning
    FROM heads
    JOIN best_heads USING (model_id, layer, head)
    JOIN evaluations USING (model_id, step)
    UNION ALL
    SELECT
        model_id, 'repeat_gain_nats', NULL, NULL, step, tokens,
        repeat_gain_nats, repeat_gain_sem_nats, in_context_learning_nats
    FROM evaluations
),
smoothed AS (
    SELECT
        * EXCLUDE (learning),
        if(tokens > 0, ln(tokens), NULL) AS x,
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
        sqrt(first_value(sem) OVER trajectory ** 2 + last_value(sem) OVER trajectory ** 2) AS change_sem,
        before + (after - before) / 3 - 1.645 * change_sem AS low,  -- the middle third, and what errors may hide of it
        after - (after - before) / 3 + 1.645 * change_sem AS high,
        lag(x) OVER trajectory AS last_x,
        lead(x) OVER trajectory AS next_x,
        last_x + (x - last_x) * (high - lag(level) OVER trajectory) / (level - lag(level) OVER trajectory) AS high_x,
        x + (next_x - x) * (low - level) / (lead(level) OVER trajectory - level) AS low_x,
        (level - lag(level) OVER trajectory) / nullif(x - lag(x) OVER trajectory, 0) AS slope
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
        x IS NOT NULL AND step < steepest_step AND coalesce(slope < slow, true) AS can_start,
        step >= steepest_step AND coalesce(lead(slope) OVER (PARTITION BY model_id, score ORDER BY step) < slow, true)
            AS can_end,
        min(if(level >= high, step, NULL)) OVER (PARTITION BY model_id, score) AS high_step
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
        window_end_tokens < max(tokens) AS has_ended,
        arg_max_null(learning, step) FILTER (can_start) AS learning_at_start,
        arg_min_null(learning, step) FILTER (can_end) AS learning_at_end,
        arg_min_null(learning, step) AS first_learning,
        arg_max_null(learning, step) AS last_learning,
        any_value(change_sem) AS change_sem,
        arg_max({'x': x, 'next_x': next_x, 'at': low_x}, step) FILTER (low > before AND level <= low AND tokens > 0 AND step < high_step) AS below,
        any_value({'x': x, 'last_x': last_x, 'at': high_x}) FILTER (step = high_step) AS above
    FROM paced
    GROUP BY model_id, score
)
SELECT
    named_models.*,
    score,
    layer,
    head,
    CASE
        WHEN after - before < smallest_change OR normal_tail((after - before) / nullif(change_sem, 0)) > 0.05 THEN 'none'
        WHEN change_sem IS NULL THEN NULL
        WHEN below IS NULL THEN 'unresolved'
        WHEN above.x - below.x < ln(abrupt_factor()) THEN 'abrupt'  -- however it went between checkpoints
        WHEN above.last_x - below.next_x >= ln(abrupt_factor()) THEN 'gradual'
        WHEN greatest(below.next_x - below.x, above.x - above.last_x) <= ln(1.6)
            THEN if(above.at - below.at < ln(abrupt_factor()), 'abrupt', 'gradual')
        ELSE 'unresolved'
    END AS kind,
    before,
    after,
    after - before AS change,
    change_sem,
    exp(above.at - below.at) AS tokens_factor,
    if(kind = 'abrupt', step, NULL) AS step,
    if(kind = 'abrupt', changes.tokens, NULL) AS tokens,
    if(kind = 'abrupt', window_start_tokens, NULL) AS window_start_tokens,
    if(kind = 'abrupt', window_end_tokens, NULL) AS window_end_tokens,
    if(kind = 'abrupt', has_ended, NULL) AS has_ended,
    if(
        kind = 'abrupt' AND last_learning < first_learning,
        greatest(0, least(1, (learning_at_end - learning_at_start) / (last_learning - first_learning))),
        NULL
    ) AS in_context_learning_share
FROM named_models
CROSS JOIN smallest_changes
LEFT JOIN changes USING (model_id, score)
ORDER BY name, seed, model_id, score
