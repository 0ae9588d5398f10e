-- Which two heads in a row do induction as one? One row a virtual head whose induction_random_period reaches the threshold of an
-- induction head and which raises the logit of what follows, the strongest first.
--
-- named_models.*
-- virtual_head: the two heads, like `L0H1 and L1H2`
-- induction_random_period: virtual_heads.induction_random_period
-- induction_copying_logit: virtual_heads.induction_copying_logit
-- rank: 1 for the highest induction_copying_logit of its model
SELECT
    named_models.*,
    head_label(first_layer, first_head) || ' and ' || head_label(second_layer, second_head) AS virtual_head,
    induction_random_period,
    induction_copying_logit,
    row_number() OVER (
        PARTITION BY model_id ORDER BY induction_copying_logit DESC, first_layer, first_head, second_layer, second_head
    ) AS rank
FROM virtual_heads
JOIN named_models USING (model_id)
WHERE induction_random_period >= induction_attention()
    AND clearly_positive(induction_copying_logit, induction_copying_logit_sem)
ORDER BY named_models.name, named_models.seed, model_id, rank
