-- statement: in a model without layers, the direct path learns the bigrams of the corpus: it explains over nine tenths of
--   what they know beyond frequencies
-- source: elhage-2021, Zero-Layer Transformers
-- texts: one-layer
-- needs: n_layers = 0
-- lacks: models of zero layers
-- rule: holds if estimate > 0.9
-- range: -inf to 1
-- unit: share of loss
-- evidence: The direct path and bigrams
-- changed: 2026-11-28, models of different shapes were pooled; now each configuration is decided from its seeds
SELECT model_id, explained_share AS value
FROM cells
JOIN bigrams USING (model_id)
WHERE study = $study AND n_layers = 0
