-- How much room heads take and how much of it they share, on average over the heads of the model that stands for each label.
WITH rooms AS (
    SELECT
        model_id,
        sum(ov_rank) AS written,
        format('{:.1f} of {}', avg(ov_effective_rank), max(ov_rank)) AS ov_effective_rank,
        format('{:.1f} of {}', avg(qk_effective_rank), max(qk_rank)) AS qk_effective_rank,
        median(persistence) FILTER (layer = 0) AS persistence_of_layer_0
    FROM last_heads
    WHERE ov_rank IS NOT NULL
    GROUP BY model_id
),
medians AS (
    SELECT model_id, median(ratio) AS median_overlap
    FROM (
        SELECT model_id, avg(overlap) / avg(random_overlap) AS ratio
        FROM (FROM subspaces QUALIFY step = max(step) OVER (PARTITION BY model_id))
        GROUP BY model_id, writer_layer, writer_head, reader_layer, reader_head
    )
    GROUP BY model_id
),
pairs AS (
    SELECT
        model_id,
        max(overlap / random_overlap) AS largest_overlap,
        arg_max(
            kind || ': ' || head_label(writer_layer, writer_head) || ' > ' || head_label(reader_layer, reader_head),
            overlap / random_overlap
        ) AS that_pair
    FROM (FROM subspaces QUALIFY step = max(step) OVER (PARTITION BY model_id))
    GROUP BY model_id
)
SELECT
    label AS model,
    ov_effective_rank,
    qk_effective_rank,
    (written + if(feed_forward = 'none', 0, labelled_models.n_layers * d_mlp)) / d_model AS bandwidth,
    if(labelled_models.n_layers > 1, persistence_of_layer_0, NULL) AS persistence_of_layer_0,
    if(labelled_models.n_layers > 1, NULL, 'no later layer') AS persistence_of_layer_0_note,
    median_overlap AS overlap_of_the_median_pair,
    if(labelled_models.n_layers > 1, NULL, 'no later layer') AS overlap_of_the_median_pair_note,
    largest_overlap AS largest_overlap_by_q_k_or_v,
    if(labelled_models.n_layers > 1, NULL, 'no later layer') AS largest_overlap_by_q_k_or_v_note,
    that_pair,
    if(labelled_models.n_layers > 1, NULL, 'no later layer') AS that_pair_note
FROM labelled_models
JOIN models USING (model_id)
JOIN rooms USING (model_id)
LEFT JOIN medians USING (model_id)
LEFT JOIN pairs USING (model_id)
WHERE study = $study AND stands_for_label
ORDER BY labelled_models.n_layers, label
