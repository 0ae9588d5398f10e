-- What becomes of a later head without all earlier heads that its induction takes, in its queries, keys or values.
SELECT
    model_id,
    reader_layer,
    reader_head,
    kind,
    array_to_string(writers, ', ') AS writers,
    prefix_matching,
    prefix_matching_without,
    induction_copying_logit,
    induction_copying_logit_without
FROM joint_checks
SEMI JOIN (FROM study_models WHERE study = $study) USING (model_id)
WHERE len(writers) > 0
ORDER BY model_id, reader_layer, reader_head, kind
