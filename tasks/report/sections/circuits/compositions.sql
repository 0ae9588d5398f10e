-- How much each head composes with each later one, and how, at the last checkpoint of the model that stands for each label.
SELECT
    label,
    head_label(writer_layer, writer_head) AS writer,
    head_label(reader_layer, reader_head) AS reader,
    writer_layer,
    writer_head,
    reader_layer,
    reader_head,
    kind,
    score,
    z,
    significant
FROM labelled_models
JOIN last_compositions USING (model_id)
WHERE study = $study AND stands_for_label
ORDER BY label, z DESC NULLS LAST, writer, reader, kind
