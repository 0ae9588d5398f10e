-- The strongest skip-trigrams of each head, of the best model with one layer or, without one, of the best model with heads.
WITH best AS (
    SELECT best_model_id AS model_id, label
    FROM model_groups
    WHERE study = $study AND best_model_id IN (SELECT model_id FROM skip_trigrams)
    ORDER BY n_layers <> 1, best_induction_random_period_mean DESC NULLS LAST, validation_loss_nats_mean NULLS LAST, label
    LIMIT 1
)
SELECT
    label AS model,
    'L' || layer || 'H' || head AS head,
    concat_ws(' … ', coalesce(source, '?'), concat_ws(' → ', coalesce(destination, '?'), coalesce(output, '?'))) AS skip_trigram,
    qk_effect,
    ov_effect,
    n_pairs,
    corpus_probability,
    output_probability,
    if(is_bug, 'bug', '') AS bug
FROM best
JOIN skip_trigrams USING (model_id)
QUALIFY row_number() OVER (PARTITION BY layer, head ORDER BY rank) <= 4
ORDER BY layer, skip_trigrams.head, rank
