-- statement: more heads help, with diminishing returns: loss falls from 1 head to 8, more from 1 to 2 than from 4 to
--   8
-- source: 003
-- over: seeds
-- needs: EXISTS (
--     SELECT 1 FROM cells WHERE n_layers > 0 GROUP BY without_axes(cell, 'n_heads')
--     HAVING count(DISTINCT n_heads) FILTER (n_heads IN (1, 2, 4, 8)) = 4)
-- lacks: models of 1, 2, 4 and 8 heads a layer at one d_model
-- rule: holds if estimate > 0
-- unit: nats, first gain minus last
-- evidence: Models
WITH losses AS (
    SELECT seed, without_axes(cell, 'n_heads') AS place, n_heads, avg(validation_loss_nats) AS loss
    FROM cells
    WHERE study = $study AND n_layers > 0
    GROUP BY ALL
)
SELECT
    seed,
    max(loss) FILTER (n_heads = 1) - max(loss) FILTER (n_heads = 2) AS first_gain,
    max(loss) FILTER (n_heads = 4) - max(loss) FILTER (n_heads = 8) AS last_gain,
    max(loss) FILTER (n_heads = 1) - max(loss) FILTER (n_heads = 8) AS whole_gain,
    least(first_gain - last_gain, whole_gain) AS value
FROM losses
GROUP BY seed, place
HAVING first_gain IS NOT NULL AND last_gain IS NOT NULL
