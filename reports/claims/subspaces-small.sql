-- kind: description
-- statement: how much of what a head writes a later one reads: overlap of the median pair over that of random spaces
-- source: elhage-2021, Subspaces and Residual Stream Bandwidth
-- texts: composition
-- needs: n_layers > 1 AND total_heads > 1
-- lacks: models with heads in two layers
-- control: the same heads before training
-- unit: times random
-- evidence: Room in the stream
-- changed: 2026-11-28, random weights met the bar (0.99 times random); now a description beside them
WITH pairs AS (
    SELECT model_id, step, avg(overlap) / avg(random_overlap) AS ratio
    FROM subspaces
    GROUP BY model_id, step, writer_layer, writer_head, reader_layer, reader_head
),
medians AS (
    SELECT model_id, step, median(ratio) AS ratio FROM pairs GROUP BY model_id, step
)
SELECT model_id, max(ratio) FILTER (step > 0) AS value, max(ratio) FILTER (step = 0) AS control
FROM cells
JOIN medians USING (model_id)
WHERE study = $study
GROUP BY model_id
