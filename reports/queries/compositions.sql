-- How much each head composes with each later one, and how, at the last checkpoint of the model that stands for each label.
WITH last_steps AS (
    SELECT model_id, max(step) AS step FROM compositions GROUP BY model_id
)
SELECT
    label,
    'L' || writer_layer || 'H' || writer_head AS writer,
    'L' || reader_layer || 'H' || reader_head AS reader,
    writer_layer,
    writer_head,
    reader_layer,
    reader_head,
    kind,
    score,
    z,
    significant
FROM labelled_models
JOIN last_steps USING (model_id)
JOIN compositions USING (model_id, step)
WHERE study = $study AND stands_for_label
ORDER BY label, z DESC NULLS LAST, writer, reader, kind
