-- Circuits of models that differ in their seed alone: what they share once heads are matched, and if these are matched at random.
SELECT
    prompts,
    label AS model,
    labelled_models.seed,
    other_seed,
    circuits_over_seeds.n_edges AS edges,
    n_other_edges AS edges_of_other,
    n_shared AS shared,
    jaccard AS shared_of_either,
    jaccard_random AS shared_at_random,
    chance,
    effects_correlation AS correlation_of_effects
FROM labelled_models
JOIN circuits_over_seeds USING (model_id)
WHERE study = $study
ORDER BY prompts, labelled_models.n_layers DESC, label, labelled_models.seed, other_seed
