-- What two behaviours of one model share: edges of both circuits, and what one loses without the other's; in the model that stands for
-- each label.
SELECT
    label AS model,
    prompts AS measured,
    corrupted,
    circuits_over_sets.n_edges AS edges_of_it,
    n_shared AS shared,
    jaccard AS shared_of_either,
    drop_share AS lost,
    drop_low AS lost_low,
    drop_high AS lost_high,
    drop_random AS lost_at_random,
    drop_of_own AS lost_without_own
FROM labelled_models
JOIN circuits_over_sets USING (model_id)
WHERE study = $study AND stands_for_label
ORDER BY labelled_models.n_layers DESC, label, prompts, corrupted
