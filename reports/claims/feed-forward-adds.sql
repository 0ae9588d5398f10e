-- statement: feed-forward layers add capacity that attention lacks: loss with them is lower at equal parameters
--   (within 5 %)
-- source: vaswani-2017, 3.3 Position-wise Feed-Forward Networks
-- texts: blocks
-- needs: feed_forward <> 'none' AND EXISTS (
--     SELECT 1 FROM cells AS other
--     WHERE other.feed_forward = 'none' AND other.seed = cells.seed
--     AND abs(other.parameters / cells.parameters - 1) <= 0.05
--     AND without_axes(other.cell, 'feed_forward|d_mlp|n_layers|n_heads|d_head|d_value|d_model')
--     = without_axes(cells.cell, 'feed_forward|d_mlp|n_layers|n_heads|d_head|d_value|d_model'))
-- lacks: models with and without feed-forward layers that have as many parameters
-- rule: holds if estimate < 0
-- seeds: 5
-- unit: nats
-- evidence: Models
-- changed: 2026-11-28, five seeds instead of two
WITH members AS (
    SELECT *, without_axes(cell, 'feed_forward|d_mlp|n_layers|n_heads|d_head|d_value|d_model') AS place
    FROM cells
    WHERE study = $study
)
SELECT
    seed,
    drop_axes(one.cell, 'seed') AS configuration,
    one.validation_loss_nats - avg(other.validation_loss_nats) AS value
FROM members AS one
JOIN members AS other USING (seed, place)
WHERE
    one.feed_forward <> 'none'
    AND other.feed_forward = 'none'
    AND abs(other.parameters / one.parameters - 1) <= 0.05
GROUP BY seed, one.cell, one.validation_loss_nats
