-- statement: heads work in small subspaces and mostly avoid each other: the median pair overlaps about as random
--   spaces do
-- source: 000
-- over: models
-- needs: n_layers > 1 AND total_heads > 1
-- lacks: models with heads in two layers
-- rule: holds if estimate between 0.5 and 2
-- unit: times random
-- evidence: Room in the stream
WITH pairs AS (
    SELECT model_id, avg(overlap) / avg(random_overlap) AS ratio
    FROM subspaces
    GROUP BY model_id, writer_layer, writer_head, reader_layer, reader_head
)
SELECT model_id, median(ratio) AS value
FROM cells
JOIN pairs USING (model_id)
WHERE study = $study
GROUP BY model_id
