-- kind: self-check
-- statement: possible virtual heads grow quadratically with layers: h^2 L (L - 1) / 2 with h heads in each of L
--   layers
-- source: elhage-2021, Virtual Attention Heads
-- texts: composition
-- needs: (
--     SELECT count(DISTINCT n_layers) FILTER (n_heads IS NOT NULL) > 2 AND max(n_layers) FILTER (n_heads IS NOT NULL) > 1
--     FROM cells)
-- lacks: models of three depths, one of them two layers or more
-- rule: holds if every model = 0
-- unit: virtual heads off
-- evidence: Virtual heads
-- changed: 2026-11-28, an identity, no longer among findings
SELECT
    model_id,
    abs(count(second_layer) - n_heads * n_heads * n_layers * (n_layers - 1) / 2) AS value
FROM cells
SEMI JOIN path_terms USING (model_id)  -- of the same stage, and never empty
LEFT JOIN virtual_heads USING (model_id)
WHERE study = $study AND n_heads IS NOT NULL
GROUP BY model_id, n_heads, n_layers
