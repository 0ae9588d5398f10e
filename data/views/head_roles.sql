-- One row a head of each model's last checkpoint: heads at that step and, in plain words, its role.
--
-- heads.*
-- label: the head as people write it, like L1H3
-- role: induction, anti-induction, previous token, duplicate token, positional or BOS, the first whose score reaches its threshold (macros of data/schema.sql); induction also needs to raise the logit of what follows, anti-induction lowers it; other if none does; NULL if no score was measured
SELECT
    *,
    head_label(layer, head) AS label,
    CASE
        WHEN induction_random_period >= induction_attention()
            AND clearly_positive(induction_copying_logit, induction_copying_logit_sem) THEN 'induction'
        WHEN induction_random_period >= induction_attention()
            AND clearly_positive(-induction_copying_logit, induction_copying_logit_sem) THEN 'anti-induction'
        WHEN previous_token >= previous_token_attention() THEN 'previous token'
        WHEN duplicate_token >= duplicate_token_attention() THEN 'duplicate token'
        WHEN positional_share_without_bos >= positional_share_of_role() THEN 'positional'
        WHEN bos_attention >= bos_attention_of_role() THEN 'BOS'
        WHEN coalesce(
            induction_random_period, previous_token, duplicate_token, positional_share_without_bos, bos_attention
        ) IS NOT NULL THEN 'other'
    END AS role
FROM last_heads
