-- What do heads tell a linear probe? One row a model and task: the head and the place in the residual
-- stream that tell most of it.
--
-- named_models.*
-- probe_tasks.*
-- baseline_accuracy: accuracy of always answering the commonest label
-- best_head: the head with the highest selectivity, like L0H3; NULL if none was measured
-- head_accuracy: accuracy of best_head
-- head_selectivity: selectivity of best_head: accuracy minus that on random labels, one for each token type
-- best_stream: the place in the stream with the highest selectivity, like R1
-- stream_accuracy: accuracy of best_stream
-- stream_selectivity: selectivity of best_stream
WITH best AS (
    SELECT *, head IS NOT NULL AS is_head
    FROM probes
    WHERE selectivity IS NOT NULL
    QUALIFY row_number() OVER (
        PARTITION BY model_id, task, head IS NOT NULL ORDER BY selectivity DESC, layer, head
    ) = 1
),
sides AS (
    SELECT
        model_id,
        task,
        max(baseline_accuracy) AS baseline_accuracy,
        max(site) FILTER (is_head) AS best_head,
        max(accuracy) FILTER (is_head) AS head_accuracy,
        max(selectivity) FILTER (is_head) AS head_selectivity,
        max(site) FILTER (NOT is_head) AS best_stream,
        max(accuracy) FILTER (NOT is_head) AS stream_accuracy,
        max(selectivity) FILTER (NOT is_head) AS stream_selectivity
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
