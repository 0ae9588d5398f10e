-- kind: self-check
-- statement: cost is O(n^2 d + n d^2): for large n (from 16 d on) FLOPs grow as n^2, for large d (from 4 n on) as d^2
-- source: vaswani-2017, 4 Why Self-Attention
-- texts: composition, multi-head, blocks
-- needs: (
--     SELECT least(json_array_length(config, '/costs/n_ctx'), json_array_length(config, '/costs/d_model')) > 1
--     FROM studies WHERE study = $study)
-- lacks: several n_ctx and several d_model in [costs]
-- rule: holds if every configuration < 0.1
-- unit: off the exponent
-- evidence: Costs
-- empty: costs were not measured up to n_ctx = 16 d_model and d_model = 4 n_ctx
-- changed: 2026-11-28, an identity, no longer among findings
WITH reached AS (  -- 1 where one of the two terms is 8 times the other
    SELECT axis, max(if(axis = 'n_ctx', n_ctx / (16 * d_model), d_model / (4 * n_ctx))) AS far
    FROM costs
    WHERE study = $study AND attention = 'full'
    GROUP BY axis
),
exponents AS (
    SELECT axis, flops_exponent AS exponent
    FROM cost_exponents
    JOIN reached USING (axis)
    WHERE study = $study AND attention = 'full' AND far >= 1 AND flops_exponent IS NOT NULL
)
SELECT axis, abs(exponent - 2) AS value
FROM exponents
WHERE (SELECT count(DISTINCT axis) FROM exponents) = 2
