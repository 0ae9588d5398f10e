-- How much each head composes with each later one, and what heads turned at random give; at the last checkpoint alone where all would be very many.
SELECT
    model_id,
    step,
    writer_layer,
    writer_head,
    reader_layer,
    reader_head,
    kind,
    score,
    sqrt(null_mean) AS chance,
    z,
    significant
FROM compositions
SEMI JOIN (FROM study_models WHERE study = $study) USING (model_id)
QUALIFY count(*) OVER () < 200000 OR step = max(step) OVER (PARTITION BY model_id)
ORDER BY model_id, step, writer_layer, writer_head, reader_layer, reader_head, kind
