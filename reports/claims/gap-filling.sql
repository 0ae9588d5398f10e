-- statement: beside heads, the direct path fills in what they leave: it correlates more with that than with raw
--   bigrams
-- source: 002
-- over: models
-- needs: n_layers = 1
-- lacks: models of one layer
-- rule: holds if estimate > 0
-- unit: correlation
-- evidence: The direct path and bigrams
WITH by_model AS (
    SELECT gap_correlation - gap_bigram_correlation AS difference
    FROM study_models
    JOIN models USING (model_id)
    JOIN bigrams USING (model_id)
    WHERE study = $study AND n_layers = 1
)
SELECT
    avg(difference) AS estimate,
    avg(difference) - ci95(difference) AS ci_low,
    avg(difference) + ci95(difference) AS ci_high,
    count(difference) AS n
FROM by_model
