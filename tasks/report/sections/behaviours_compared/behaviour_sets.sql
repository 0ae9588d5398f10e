-- What two behaviours of one model share: edges of both circuits, and what one loses without an edge that only the other's has; in the model
-- that stands for each label.
SELECT
    label AS model,
    prompts AS measured,
    other,
    circuits_over_sets.n_edges AS edges,
    n_other_edges AS edges_of_other,
    n_shared AS shared,
    jaccard AS shared_of_either,
    effects_correlation AS correlation_of_effects,
    n_only_other AS only_in_other,
    n_needed AS of_these_surely_needed,
    largest_share AS largest_loss,
    if(n_only_other = 0, 'none is the other''s alone', NULL) AS largest_loss_note,
    largest_low AS largest_loss_low,
    if(n_only_other = 0, 'none is the other''s alone', NULL) AS largest_loss_low_note,
    largest_high AS largest_loss_high,
    if(n_only_other = 0, 'none is the other''s alone', NULL) AS largest_loss_high_note
FROM labelled_models
JOIN circuits_over_sets USING (model_id)
WHERE study = $study AND stands_for_label
ORDER BY labelled_models.n_layers DESC, label, prompts, other
