-- kind: description
-- statement: the median persistence of what the first layer's heads write: 1 where later writes neither add to it nor take from it
-- source: elhage-2021, Subspaces and Residual Stream Bandwidth
-- texts: composition
-- needs: n_layers > 1 AND heads_per_layer[1] > 0
-- lacks: models of two layers or more
-- control: the same heads before training
-- unit: times what was written
-- evidence: Room in the stream
-- changed: 2026-11-28, random weights met the bar (0.91); now a description beside them
WITH medians AS (
    SELECT model_id, step, median(persistence) AS left_over
    FROM heads
    WHERE layer = 0
    GROUP BY model_id, step
)
SELECT model_id, arg_max(left_over, step) FILTER (step > 0) AS value, max(left_over) FILTER (step = 0) AS control
FROM cells
JOIN medians USING (model_id)
WHERE study = $study AND n_layers > 1
GROUP BY model_id
