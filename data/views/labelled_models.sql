-- What does a report call a model? One row a study and trained model; models that differ only in their seed share a label.
--
-- study_models.*
-- models.*
-- label: the model's short name, its variant and whatever else the study's grid varies, except seeds, like `2L4H positions=rotary`; of an imported model its name in [[models]]
-- stands_for_label: true for the model whose best_induction_random_period is the median of its label's, of two the lower one; of equals, by validation loss; if some have an induction head and others don't, of those that have
WITH settings AS (
    SELECT study, model_id, unnest(regexp_extract_all(cell, '\w+=(\[[^\]]*\]|\S*)')) AS setting
    FROM study_models
),
varied AS (
    FROM settings
    WINDOW axis AS (PARTITION BY study, split_part(setting, '=', 1))
    QUALIFY min(setting) OVER axis <> max(setting) OVER axis
),
of_variants AS (  -- what only some models set, where variants are named: the name says it
    SELECT study, split_part(setting, '=', 1) AS axis
    FROM settings
    JOIN (SELECT study, count(*) AS n_models FROM study_models WHERE regexp_matches(cell, '\bvariant=') GROUP BY study) USING (study)
    GROUP BY study, axis, n_models
    HAVING count(*) < n_models
),
labels AS (
    SELECT
        study,
        model_id,
        cell,
        coalesce(imported_as, concat_ws(' ', name, string_agg(replace(setting, 'variant=', ''), ' ' ORDER BY setting) FILTER (
            split_part(setting, '=', 1) NOT IN ('seed', 'n_layers')
            AND (n_layers = 0 OR split_part(setting, '=', 1) <> 'n_heads')  -- the name of a model with layers says it
        ))) AS label
    FROM study_models
    JOIN models USING (model_id)
    LEFT JOIN (
        FROM varied ANTI JOIN of_variants ON varied.study = of_variants.study AND split_part(setting, '=', 1) = axis
    ) USING (study, model_id)
    GROUP BY study, model_id, cell, name, imported_as
)
SELECT
    study,
    label,
    model_id,
    cell,
    seed,
    n_layers,
    coalesce(has_induction_head, false) = bool_or(coalesce(has_induction_head, false)) OVER (PARTITION BY study, label)
        AND row_number() OVER (
            PARTITION BY study, label, coalesce(has_induction_head, false)
            ORDER BY best_induction_random_period DESC NULLS LAST, validation_loss_nats NULLS LAST, seed, model_id
        ) = 1 + count(*) OVER (PARTITION BY study, label, coalesce(has_induction_head, false)) // 2 AS stands_for_label
FROM labels
JOIN model_summary USING (model_id)
ORDER BY study, label, seed, model_id
