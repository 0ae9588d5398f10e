-- When did a score take off, and was it abrupt? One row a model and score. Its steepest part, between two checkpoints, is
-- found on the trajectory over ln(tokens), smoothed by medians of 3 except at its two ends; the initialisation has no
-- place on that axis. It is tested on the scores as measured, against the straight line through them (least squares).
--
-- named_models.*
-- score: prefix_matching, of the head in which it is highest at the last checkpoint, or repeat_gain_nats
-- layer: layer of the head with the score; NULL for repeat_gain_nats
-- head: the head with the score, counted from 0 within its layer; NULL for repeat_gain_nats
-- kind: none: it rose by less than 0.1 (prefix_matching) or 0.2 nats (repeat_gain_nats), or not significantly at 5 %. abrupt: in its steepest part it rose above the straight line, significantly at 5 %, by a quarter of its whole change or more. gradual: it rose, but not so. NULL if not measured, or at too few checkpoints to tell
-- before: the score at the first checkpoint
-- after: the score at the last checkpoint
-- change: after minus before
-- excess: by how much the score rose in its steepest part beyond what the straight line rises there
-- excess_sem: standard error of excess, from those of the scores, checkpoints taken as independent: if anything too large, as errors that they share cancel
-- excess_chance: how often a straight trajectory with such errors has such an excess in any of its parts: at most so often (Bonferroni)
-- step: the checkpoint to which the steepest change led; NULL, like the window, unless abrupt
-- tokens: tokens seen by the checkpoint to which the steepest change led
-- window_start_tokens: first checkpoint of the steepest part, the stretch around step in which the score rises at least a quarter as fast, tokens
-- window_end_tokens: last checkpoint of that stretch, tokens
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
        arg_max_null(learning, step) AS last_learning,
        sqrt(arg_min_null(sem, step) ** 2 + arg_max_null(sem, step) ** 2) AS change_sem,
        count(x) AS n_points,
        avg(x) AS mean_x,
        regr_sxx(value, x) AS spread_x
    FROM paced
    GROUP BY model_id, score
),
weighed AS (  -- what each score counts in the excess: 1 and -1 at the ends of the window, minus its weight in the line
    SELECT
        model_id,
        score,
        value,
        sem,
        (paced.tokens = window_end_tokens)::INTEGER - (paced.tokens = window_start_tokens)::INTEGER
        - (x - mean_x) / spread_x * (ln(window_end_tokens) - ln(window_start_tokens)) AS weight
    FROM paced
    JOIN changes USING (model_id, score)
    WHERE x IS NOT NULL AND n_points >= 3
),
tested AS (
    SELECT
        model_id,
        score,
        sum(weight * value) AS excess,
        if(count(sem) = count(*), sqrt(sum((weight * sem) ** 2)), NULL) AS excess_sem,
        if(
            excess_sem > 0, least(1, count(*) * (count(*) - 1) / 2 * normal_tail(excess / excess_sem)), NULL
        ) AS excess_chance
    FROM weighed
    GROUP BY model_id, score
)
SELECT
    named_models.*,
    score,
    layer,
    head,
    CASE
        WHEN after - before < smallest_change OR normal_tail((after - before) / nullif(change_sem, 0)) > 0.05 THEN 'none'
        WHEN excess_chance <= 0.05 AND excess >= (after - before) / 4 THEN 'abrupt'
        WHEN excess_chance IS NOT NULL THEN 'gradual'
    END AS kind,
    before,
    after,
    after - before AS change,
    excess,
    excess_sem,
    excess_chance,
    if(kind = 'abrupt', step, NULL) AS step,
    if(kind = 'abrupt', changes.tokens, NULL) AS tokens,
    if(kind = 'abrupt', window_start_tokens, NULL) AS window_start_tokens,
    if(kind = 'abrupt', window_end_tokens, NULL) AS window_end_tokens,
    if(
        kind = 'abrupt' AND last_learning < first_learning,
        greatest(0, least(1, (learning_at_end - learning_at_start) / (last_learning - first_learning))),
        NULL
    ) AS in_context_learning_share
FROM named_models
CROSS JOIN smallest_changes
LEFT JOIN changes USING (model_id, score)
LEFT JOIN tested USING (model_id, score)
ORDER BY name, seed, model_id, score
