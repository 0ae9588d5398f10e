-- statement: more heads overfit less: the gap between validation and training loss falls with the number of heads
-- source: 003
-- over: seeds
-- needs: EXISTS (
--     SELECT 1 FROM cells WHERE n_layers > 0 GROUP BY without_axes(cell, 'n_heads') HAVING count(DISTINCT n_heads) > 1)
-- lacks: models of two head counts or more
-- rule: holds if estimate < 0
-- unit: nats a doubling of heads
-- evidence: Models
WITH slopes AS (
    SELECT models.seed, regr_slope(validation_loss_nats - final_train_loss_nats, log2(models.n_heads)) AS slope
    FROM study_models
    JOIN models USING (model_id)
    JOIN model_summary USING (model_id)
    WHERE study = $study AND models.n_layers > 0 AND validation_loss_nats - final_train_loss_nats IS NOT NULL
    GROUP BY models.seed, without_axes(cell, 'n_heads')
    HAVING count(DISTINCT models.n_heads) > 1
),
by_seed AS (
    SELECT seed, avg(slope) AS slope FROM slopes GROUP BY seed
)
SELECT
    avg(slope) AS estimate,
    avg(slope) - ci95(slope) AS ci_low,
    avg(slope) + ci95(slope) AS ci_high,
    count(slope) AS n
FROM by_seed
