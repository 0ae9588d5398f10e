-- statement: feed-forward layers add capacity that attention lacks: loss with them is lower at equal parameters
--   (within 5 %)
-- source: 004
-- over: seeds
-- needs: feed_forward <> 'none' AND EXISTS (
--     SELECT 1 FROM cells AS other
--     WHERE other.feed_forward = 'none' AND other.seed = cells.seed
--     AND abs(other.parameters / cells.parameters - 1) <= 0.05
--     AND without_axes(other.cell, 'feed_forward|d_mlp|n_layers|n_heads|d_head|d_value|d_model')
--     = without_axes(cells.cell, 'feed_forward|d_mlp|n_layers|n_heads|d_head|d_value|d_model'))
-- lacks: models with and without feed-forward layers that have as many parameters
-- rule: holds if estimate < 0
-- unit: nats
-- evidence: Models
WITH members AS (
    SELECT
        model_id,
        models.seed,
        feed_forward <> 'none' AS has_feed_forward,
        models.parameters,
        validation_loss_nats AS loss,
        without_axes(cell, 'feed_forward|d_mlp|n_layers|n_heads|d_head|d_value|d_model') AS place
    FROM study_models
    JOIN models USING (model_id)
    JOIN model_summary USING (model_id)
    WHERE study = $study
),
differences AS (
    SELECT one.model_id, one.seed, one.loss - avg(other.loss) AS difference
    FROM members AS one
    JOIN members AS other USING (seed, place)
    WHERE
        one.has_feed_forward
        AND NOT other.has_feed_forward
        AND abs(other.parameters / one.parameters - 1) <= 0.05
    GROUP BY one.model_id, one.seed, one.loss
),
by_seed AS (
    SELECT seed, avg(difference) AS difference FROM differences GROUP BY seed
)
SELECT
    avg(difference) AS estimate,
    avg(difference) - ci95(difference) AS ci_low,
    avg(difference) + ci95(difference) AS ci_high,
    count(difference) AS n
FROM by_seed
