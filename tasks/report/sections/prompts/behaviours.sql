-- Of each prompt set and kind of model, by the model that stands for it: whether it can do it, and how small its circuit is.
SELECT
    prompts,
    label AS model,
    n_pairs AS pairs,
    accuracy,
    clean_nats AS log_odds_nats,
    corrupt_nats AS log_odds_corrupt_nats,
    CASE WHEN can_do_it THEN 'yes' WHEN can_do_it IS NOT NULL THEN 'not shown' END AS can_do_it,
    why_refused AS can_do_it_note,
    format('{:,} of {:,}', n_edges_enough, n_edges) AS edges_for_nine_tenths,
    if(coalesce(can_do_it, false), NULL, 'no circuit') AS edges_for_nine_tenths_note,
    faithfulness_enough AS these_make,
    if(coalesce(can_do_it, false), NULL, 'no circuit') AS these_make_note,
    n_surely_in AS edges_surely_in,
    if(coalesce(can_do_it, false), NULL, 'no circuit') AS edges_surely_in_note,
    cmd_absolute AS cmd,
    if(coalesce(can_do_it, false), NULL, 'no circuit') AS cmd_note,
    cmd_random AS cmd_of_random,
    if(coalesce(can_do_it, false), NULL, 'no circuit') AS cmd_of_random_note
FROM labelled_models
JOIN prompts_in_short USING (model_id)
WHERE study = $study AND stands_for_label
ORDER BY prompts, labelled_models.n_layers, label
