-- How much of the difference between prompts circuits of each size make, on pairs that they were not found on; in the model that stands
-- for each label.
SELECT label, labelled_models.n_layers, prompts, edges_by, fraction, draw, n_edges, faithfulness, completeness
FROM labelled_models
JOIN circuit_curves USING (model_id)
WHERE study = $study AND stands_for_label AND pairs = 'judged'
ORDER BY prompts, label, edges_by, draw, fraction
