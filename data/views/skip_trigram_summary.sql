-- What do heads' skip-trigrams say, and does the corpus agree? One row a skip-trigram of the last
-- checkpoint, as in skip_trigrams.
--
-- named_models.*
-- skip_trigrams.*
-- label: the head as people write it, like L1H3
-- skip_trigram: `source … destination → output`, their texts
-- source_rank: rank of its source among the head's, counted from 0
-- rank_of_source: rank among the head's skip-trigrams with this source, counted from 0
-- verdict: right if output follows more than twice as often as it occurs anywhere, and 5 times or more; bug as in skip_trigrams.is_bug; else neither
-- copies: whether output is source, apart from a space before it
-- right_output: bugs only: the skip-trigram in which the output is right
-- right_destination: bugs only: the skip-trigram that is right after the destination
WITH ranked AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY model_id, layer, head, source ORDER BY rank) - 1 AS rank_of_source,
        min(rank) OVER (PARTITION BY model_id, layer, head, source) AS best_rank
    FROM (FROM skip_trigrams QUALIFY step = max(step) OVER (PARTITION BY model_id))
)
SELECT
    model_id,
    named_models.* EXCLUDE (model_id),
    layer,
    head,
    head_label(layer, head) AS label,
    rank,
    source || ' … ' || destination || ' → ' || output AS skip_trigram,
    dense_rank() OVER (PARTITION BY model_id, layer, head ORDER BY best_rank) - 1 AS source_rank,
    rank_of_source,
    qk_effect,
    ov_effect,
    n_pairs,
    corpus_probability,
    output_probability,
    CASE
        WHEN is_bug THEN 'bug'
        WHEN corpus_probability > 2 * output_probability AND round(corpus_probability * n_pairs) >= 5 THEN 'right'
        ELSE 'neither'
    END AS verdict,
    output = source OR (ltrim(output, '·') = ltrim(source, '·') AND ltrim(source, '·') <> '') AS copies,
    source || ' … ' || other_destination || ' → ' || output AS right_output,
    source || ' … ' || destination || ' → ' || other_output AS right_destination
FROM ranked
LEFT JOIN named_models USING (model_id)
ORDER BY name, seed, model_id, layer, head, rank
