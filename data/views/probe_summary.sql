-- What do heads tell a linear probe? One row a model and task: the head and the place in the residual stream that were
-- chosen as the best on other documents than those that they are tested on, so that what the best of many gains by
-- chance is not in its gain.
--
-- named_models.*
-- probe_tasks.*
-- majority_accuracy: accuracy of always answering the commonest label
-- type_accuracy: accuracy of answering the commonest label of the token itself
-- best_head: the head with the highest selection_gain, like L0H3; NULL if none was measured
-- head_accuracy: accuracy of best_head
-- head_control_accuracy: accuracy of best_head on random labels, one for each token type; mean over draws
-- head_selectivity: head_accuracy minus head_control_accuracy
-- head_gain: head_accuracy minus the highest of majority_accuracy, type_accuracy and head_control_accuracy
-- head_gain_low: lower end of its 95 % interval over documents of the test text and draws of random labels
-- head_gain_high: upper end of its 95 % interval
-- best_stream: the place in the stream with the highest selection_gain, like R1
-- stream_accuracy: accuracy of best_stream
-- stream_gain: gain of best_stream
-- stream_gain_low: lower end of its 95 % interval
-- stream_gain_high: upper end of its 95 % interval
WITH best AS (
    SELECT *, head IS NOT NULL AS is_head
    FROM probes
    WHERE selection_gain IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY model_id, task, head IS NOT NULL ORDER BY selection_gain DESC, layer, head
    ) = 1
),
sides AS (
    SELECT
        model_id,
        task,
        max(majority_accuracy) AS majority_accuracy,
        max(type_accuracy) AS type_accuracy,
        max(site) FILTER (is_head) AS best_head,
        max(accuracy) FILTER (is_head) AS head_accuracy,
        max(control_accuracy) FILTER (is_head) AS head_control_accuracy,
        max(selectivity) FILTER (is_head) AS head_selectivity,
        max(gain) FILTER (is_head) AS head_gain,
        max(gain_low) FILTER (is_head) AS head_gain_low,
        max(gain_high) FILTER (is_head) AS head_gain_high,
        max(site) FILTER (NOT is_head) AS best_stream,
        max(accuracy) FILTER (NOT is_head) AS stream_accuracy,
        max(gain) FILTER (NOT is_head) AS stream_gain,
        max(gain_low) FILTER (NOT is_head) AS stream_gain_low,
        max(gain_high) FILTER (NOT is_head) AS stream_gain_high
    FROM best
    GROUP BY model_id, task
)
SELECT
    model_id,
    named_models.* EXCLUDE (model_id),
    sides.* EXCLUDE (model_id)
FROM sides
LEFT JOIN named_models USING (model_id)
ORDER BY name, seed, model_id, task
