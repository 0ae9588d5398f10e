-- kind: description
-- statement: how much of what W_Q, W_K and W_V of a head read is the same: overlap over that of random spaces
-- source: vaswani-2017, 3.2.2 Multi-Head Attention
-- texts: blocks
-- needs: total_heads > 0 AND d_head < d_model
-- lacks: models whose heads are narrower than d_model
-- control: the same heads before training
-- unit: times random
-- evidence: Room in the stream
-- changed: 2026-11-28, random weights met the bar (1.00 times random); now a description beside them
WITH ratios AS (
    SELECT
        model_id,
        step,
        avg(
            query_key_overlap / d_head
            + (query_value_overlap + key_value_overlap) / greatest(d_head, d_value)
        ) * any_value(d_model) / 3 AS ratio
    FROM cells
    JOIN heads USING (model_id)
    WHERE study = $study AND d_head < d_model
    GROUP BY model_id, step
)
SELECT model_id, arg_max(ratio, step) FILTER (step > 0) AS value, max(ratio) FILTER (step = 0) AS control
FROM ratios
GROUP BY model_id
