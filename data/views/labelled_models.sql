-- What does a report call a model? One row a study and trained model; models that differ only in their seed share a label.
--
-- study: studies.study
-- label: the model's short name and what else varies in the study's grid, seeds left out, like `2L4H positions=rotary`
-- model_id: models.model_id
-- seed: of weights and batches
-- n_layers: layers
-- stands_for_label: true for the model with the highest best_induction_random_period of its label; of equals, the lowest validation loss
WITH settings AS (
    SELECT study, model_id, unnest(regexp_extract_all(cell, '\w+=(\[[^\]]*\]|\S*)')) AS setting
    FROM study_models
),
varied AS (
    FROM settings
    WINDOW axis AS (PARTITION BY study, split_part(setting, '=', 1))
    QUALIFY min(setting) OVER axis <> max(setting) OVER axis
),
labels AS (
    SELECT
        study,
        model_id,
        concat_ws(' ', name, string_agg(setting, ' ' ORDER BY setting) FILTER (
            split_part(setting, '=', 1) NOT IN ('seed', 'n_layers')
            AND (n_layers = 0 OR split_part(setting, '=', 1) <> 'n_heads')  -- the name of a model with layers says it
        )) AS label
    FROM study_models
    JOIN models USING (model_id)
    LEFT JOIN varied USING (study, model_id)
    GROUP BY study, model_id, name
)
SELECT
    study,
    label,
    model_id,
    seed,
    n_layers,
    row_number() OVER (
        PARTITION BY study, label
        ORDER BY best_induction_random_period DESC NULLS LAST, validation_loss_nats NULLS LAST, seed, model_id
    ) = 1 AS stands_for_label
FROM labels
JOIN model_summary USING (model_id)
ORDER BY study, label, seed, model_id
