-- How large is the circuit of a behaviour in each kind of model? One row a study, label and prompt set; means over the seeds that can
-- do it, error bars over seeds.
--
-- study: studies.study
-- label: labelled_models.label
-- prompts: the prompt set
-- n_layers: models.n_layers
-- n_models: models that were asked, one for each seed
-- n_can: of these, models that are shown to do it
-- accuracy: fraction of pairs whose right answer is the likelier one, mean over all seeds
-- edges_share: edges of the smallest circuit that makes 0.9 of the difference where it was found, over all edges of the model
-- edges_enough: the same, as a number of edges
-- cmd: prompt_circuits.cmd_absolute
-- cmd_random: prompt_circuits.cmd_random
SELECT
    study,
    label,
    prompts,
    any_value(labelled_models.n_layers) AS n_layers,
    count(*) AS n_models,
    count(*) FILTER (can_do_it) AS n_can,
    avg(accuracy) AS accuracy,
    list(accuracy ORDER BY labelled_models.seed, model_id) AS accuracy_values,
    avg(n_edges_enough / n_edges) AS edges_share,
    list(n_edges_enough / n_edges ORDER BY labelled_models.seed, model_id) FILTER (can_do_it) AS edges_share_values,
    avg(n_edges_enough) AS edges_enough,
    ci95(n_edges_enough) AS edges_enough_ci95,
    list(n_edges_enough ORDER BY labelled_models.seed, model_id) FILTER (can_do_it) AS edges_enough_values,
    avg(cmd_absolute) AS cmd,
    ci95(cmd_absolute) AS cmd_ci95,
    list(cmd_absolute ORDER BY labelled_models.seed, model_id) FILTER (can_do_it) AS cmd_values,
    avg(cmd_random) AS cmd_random,
    list(cmd_random ORDER BY labelled_models.seed, model_id) FILTER (can_do_it) AS cmd_random_values
FROM labelled_models
JOIN prompts_in_short USING (model_id)
WHERE can_do_it IS NOT NULL
GROUP BY study, label, prompts
ORDER BY study, prompts, n_layers, label
