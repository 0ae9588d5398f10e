-- What becomes of a later head without an earlier one's output in its queries, keys or values.
SELECT
    model_id,
    writer_layer,
    writer_head,
    reader_layer,
    reader_head,
    kind,
    prefix_matching,
    prefix_matching_without,
    loss_effect_nats
FROM causal_checks
SEMI JOIN (FROM study_models WHERE study = $study) USING (model_id)
ORDER BY model_id, writer_layer, writer_head, reader_layer, reader_head, kind
