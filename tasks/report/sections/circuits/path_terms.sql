-- What the paths through no head, one head, two heads do to the loss, and single paths, in the model that stands for each label.
SELECT
    label,
    term,
    term_order,
    heads IS NOT NULL AS is_one_path,
    loss_effect_nats,
    removal_effect_nats,
    logit_share,
    linearised
FROM labelled_models
JOIN path_terms USING (model_id)
WHERE study = $study AND stands_for_label
ORDER BY label, is_one_path, term_order NULLS LAST, abs(loss_effect_nats) DESC, term
