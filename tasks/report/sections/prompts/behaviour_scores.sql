-- How well first-order scores of edges tell their exact effects, over edges drawn at random; and how stable circuits are over resamples.
SELECT
    prompts,
    label AS model,
    n_drawn AS edges_drawn,
    scores_pearson AS correlation,
    scores_spearman AS rank_correlation,
    scores_right_signs AS right_signs,
    scores_slope AS slope,
    mean_jaccard AS jaccard_of_resamples,
    cmd_where_found AS cmd_where_found,
    cmd_swapped AS cmd_of_swapped_answers
FROM labelled_models
JOIN prompt_circuits USING (model_id)
WHERE study = $study AND stands_for_label
ORDER BY prompts, labelled_models.n_layers, label
