-- Which circuit does induction in a model? One row a model: its head with the highest induction_random_period (the
-- reader), of the heads in earlier layers the one with the highest previous_token (the writer), and what joins them.
--
-- named_models.*
-- reader: the reader as people write it, like L1H3; NULL if no score was measured
-- reader_role: the reader's role, as in head_summary
-- induction_random_period: the reader's induction_random_period
-- prefix_matching: the reader's prefix_matching
-- copying_eigenvalues: eigenvalue score of the reader's OV circuit, -1..1: 1 copies
-- copies: whether copying_eigenvalues reaches clear_eigenvalues()
-- writer: the writer, like L0H1; NULL if there is no earlier layer
-- writer_role: the writer's role, as in head_summary
-- previous_token: the writer's previous_token
-- n_earlier: heads in layers before the reader's; NULL if there are none
-- k_score: K-composition of reader and writer, 0..1
-- k_z: distance of k_score from chance, standard deviations of score^2
-- k_rank: rank of k_z among all heads with which the reader could K-compose; 1 is the highest
-- k_significant: compositions.significant
-- matching_eigenvalues: eigenvalue score of the reader's QK circuit if its keys read the writer alone, -1..1: 1 looks for the query's token
-- matches: whether matching_eigenvalues reaches clear_eigenvalues()
-- key_share: share of the variance of the reader's scores that comes from keys reading the writer
-- induction_random_period_without: the reader's induction_random_period when its keys don't read the writer
-- depends: whether induction_random_period_without is at most half of induction_random_period; NULL if not tried
-- prefix_matching_without: the reader's prefix_matching when its keys don't read the writer
-- loss_effect_nats: rise of validation loss when the reader's keys don't read the writer, nats
-- formed_step: first checkpoint at which the reader reaches half of its last induction_random_period; NULL unless its role is induction
-- formed_tokens: tokens seen by formed_step
-- found: whether the reader's role is induction and it depends on the writer; NULL if not tried
-- is_complete: whether the writer's role is previous token and k_significant, depends, matches and copies are all true
WITH readers AS (
    FROM head_summary
    WHERE induction_random_period IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY model_id ORDER BY induction_random_period DESC, layer, head) = 1
),
writers AS (
    SELECT
        earlier.*,
        readers.layer AS reader_layer,
        readers.head AS reader_head,
        count(*) OVER (PARTITION BY earlier.model_id) AS n_earlier
    FROM readers
    JOIN head_summary AS earlier ON earlier.model_id = readers.model_id AND earlier.layer < readers.layer
    QUALIFY row_number() OVER (
        PARTITION BY earlier.model_id ORDER BY earlier.previous_token DESC, earlier.layer, earlier.head
    ) = 1
),
by_keys AS (
    SELECT *, rank() OVER (PARTITION BY model_id, step, reader_layer, reader_head ORDER BY z DESC) AS k_rank
    FROM compositions
    WHERE kind = 'K'
),
joined AS (
    SELECT
        writers.model_id,
        writers.label AS writer,
        writers.role AS writer_role,
        n_earlier,
        writers.previous_token,
        by_keys.score AS k_score,
        by_keys.z AS k_z,
        by_keys.k_rank,
        by_keys.significant AS k_significant,
        by_keys.matching_eigenvalues,
        checks.induction_random_period_without,
        checks.prefix_matching_without,
        checks.loss_effect_nats
    FROM writers
    LEFT JOIN by_keys
        ON by_keys.model_id = writers.model_id
        AND by_keys.step = writers.step
        AND (by_keys.writer_layer, by_keys.writer_head) = (writers.layer, writers.head)
        AND (by_keys.reader_layer, by_keys.reader_head) = (writers.reader_layer, writers.reader_head)
    LEFT JOIN causal_checks AS checks
        ON checks.model_id = writers.model_id
        AND checks.kind = 'K'
        AND (checks.writer_layer, checks.writer_head) = (writers.layer, writers.head)
        AND (checks.reader_layer, checks.reader_head) = (writers.reader_layer, writers.reader_head)
),
key_shares AS (
    SELECT writers.model_id, sum(share) AS key_share
    FROM score_terms
    JOIN writers ON
        score_terms.model_id = writers.model_id
        AND (score_terms.layer, score_terms.head) = (writers.reader_layer, writers.reader_head)
        AND score_terms.key_source = writers.label
    GROUP BY ALL
),
formations AS (
    SELECT readers.model_id, min(heads.step) AS formed_step, min(evaluations.tokens) AS formed_tokens
    FROM readers
    JOIN heads USING (model_id, layer, head)
    LEFT JOIN evaluations ON (evaluations.model_id, evaluations.step) = (heads.model_id, heads.step)
    WHERE readers.role = 'induction' AND heads.induction_random_period >= readers.induction_random_period / 2
    GROUP BY readers.model_id
)
SELECT
    named_models.*,
    readers.label AS reader,
    readers.role AS reader_role,
    readers.induction_random_period,
    readers.prefix_matching,
    last_heads.copying_eigenvalues,
    last_heads.copying_eigenvalues >= clear_eigenvalues() AS copies,
    writer,
    writer_role,
    joined.previous_token,
    n_earlier,
    k_score,
    k_z,
    k_rank,
    k_significant,
    joined.matching_eigenvalues,
    joined.matching_eigenvalues >= clear_eigenvalues() AS matches,
    key_share,
    induction_random_period_without,
    induction_random_period_without <= readers.induction_random_period / 2 AS depends,
    prefix_matching_without,
    loss_effect_nats,
    formed_step,
    formed_tokens,
    named_models.n_layers > 1 AND reader_role = 'induction' AND writer IS NOT NULL AND depends AS found,
    writer_role = 'previous token' AND k_significant AND depends AND matches AND copies AS is_complete
FROM named_models
LEFT JOIN readers USING (model_id)
LEFT JOIN last_heads USING (model_id, layer, head)
LEFT JOIN joined USING (model_id)
LEFT JOIN key_shares USING (model_id)
LEFT JOIN formations USING (model_id)
ORDER BY named_models.name, named_models.seed, model_id
