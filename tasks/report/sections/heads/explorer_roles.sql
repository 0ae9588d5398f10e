-- The role of every head, and from what attention on a head has one.
SELECT
    model_id,
    layer,
    head,
    role,
    induction_attention() AS induction_bar,
    previous_token_attention() AS previous_token_bar,
    duplicate_token_attention() AS duplicate_token_bar,
    positional_share_of_role() AS positional_bar,
    bos_attention_of_role() AS bos_bar
FROM head_summary
SEMI JOIN (FROM study_models WHERE study = $study) USING (model_id)
ORDER BY model_id, layer, head
