-- Every model to which something was done, beside its base.
SELECT
    done,
    seed,
    model_id AS model,
    tokens_to_form,
    base_tokens_to_form,
    delay_log2 AS delay,
    if(is_censored, delay_at_least, NULL) AS delay_at_least,
    is_censored AS not_formed,
    best_head,
    induction_random_period AS induction,
    base_best_head,
    base_induction_random_period AS base_induction,
    writer,
    base_writer
FROM intervention_effects
WHERE study = $study
ORDER BY what, seed, done
