-- Which circuits do induction in a model? One row a reader: each head whose role is induction or anti-induction and, in a
-- model without one, the head nearest to it. Its writers are the earlier heads of joint_checks: by K-composition, or by
-- Q-composition (pointers) where it depends on those and not on those by K. What it copies is the token that it looks at,
-- or what carriers wrote there, earlier heads by V-composition.
--
-- named_models.*
-- reader: the reader as people write it, like L1H3; NULL if no score was measured
-- reader_role: the reader's role, as in head_summary
-- is_strongest: whether of the model's induction heads (of all its heads, if there is none) it has the highest induction_random_period; true in one row a model
-- induction_random_period: the reader's induction_random_period
-- induction_copying_logit: the reader's induction_copying_logit
-- prefix_matching: the reader's prefix_matching
-- copying_eigenvalues: eigenvalue score of the reader's OV circuit, -1..1: 1 copies
-- copies: whether copying_eigenvalues reaches clear_eigenvalues()
-- n_earlier: heads in layers before the reader's
-- kind: K or Q: whether the reader's keys or its queries read the writers; NULL if no circuit was looked for
-- writers: the writers, like L0H1, the largest effect first; empty if there are none
-- n_writers: writers; NULL if none were looked for
-- writer: the first of the writers; NULL if there are none
-- writer_attention: what each writer gives to the keys that make it one: its previous_token (K) or duplicate_token (Q)
-- writer_offsets: how far back each writer most often looks hardest, positions, BOS left out
-- writer_z: compositions.z of each writer and the reader
-- score: composition of the reader with the first writer, 0..1
-- z: distance of score from chance, standard deviations of score^2
-- z_rank: rank of the first writer's z among all heads with which the reader could compose so; 1 is the highest; z that agree to a tenth share it
-- also_compose: heads that compose so with the reader, significantly, but aren't its writers: they don't attend to what a writer must, or removing them changes little; the highest z first; NULL if compositions were not measured
-- also_compose_attention: what each of these gives to the keys that would make it a writer: its previous_token (K) or duplicate_token (Q)
-- also_compose_without: the reader's prefix_matching without each of these alone in its keys (K) or queries (Q); NULL if not tried
-- matching_eigenvalues: eigenvalue score of the reader's QK circuit if its keys read the first writer alone, -1..1: 1 looks for the query's token; NULL for kind Q
-- matches: whether matching_eigenvalues reaches clear_eigenvalues()
-- score_share: share of the variance of the reader's attention scores that comes from its keys (K) or queries (Q) reading the writers
-- prefix_matching_without: the reader's prefix_matching without all writers in its keys (K) or queries (Q)
-- prefix_matching_without_each: the same without each writer alone
-- induction_random_period_without: the reader's induction_random_period without all writers
-- loss_effect_nats: rise of validation loss without all writers in the reader's keys or queries, nats
-- depends: whether prefix_matching_without is at most half of prefix_matching; NULL if not tried
-- carriers: earlier heads whose output, in the reader's values, adds to what it adds to the logit of what follows, the largest effect first; NULL if none were looked for
-- copying_logit_without_carriers: the reader's induction_copying_logit without all carriers in its values
-- is_carried: whether copying_logit_without_carriers is at most half of induction_copying_logit in size; false without carriers
-- carried_copying_eigenvalues: eigenvalue score of the OV circuits of the first carrier and the reader in a row, -1..1: 1 copies
-- formed_step: first checkpoint at which the reader reaches half of its last induction_random_period; NULL unless its role is induction
-- formed_tokens: tokens seen by formed_step
-- found: whether the reader's role is induction and it depends on its writers; NULL if not tried
-- is_complete: whether the reader depends on writers by K, matches, and copies by itself or from carriers, be its role induction or not
WITH ranked AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY model_id ORDER BY role = 'induction' DESC, induction_random_period DESC, layer, head
        ) = 1 AS is_strongest
    FROM head_summary
    WHERE induction_random_period IS NOT NULL
),
readers AS (
    SELECT
        ranked.*,
        (
            SELECT count(*) FROM last_heads AS earlier
            WHERE earlier.model_id = ranked.model_id AND earlier.layer < ranked.layer
        ) AS n_earlier
    FROM ranked
    WHERE is_strongest OR role IN ('induction', 'anti-induction')
),
circuits AS (
    SELECT
        joint_checks.* EXCLUDE (reader_layer, reader_head),
        reader_layer AS layer,
        reader_head AS head,
        prefix_matching_without <= prefix_matching / 2 AS depends
    FROM joint_checks
    WHERE kind IN ('K', 'Q')
    QUALIFY row_number() OVER (
        PARTITION BY model_id, reader_layer, reader_head
        ORDER BY coalesce(depends, false) DESC, len(writers) > 0 DESC, kind
    ) = 1
),
carrying AS (
    SELECT
        joint_checks.model_id,
        reader_layer AS layer,
        reader_head AS head,
        writers AS carriers,
        induction_copying_logit_without AS copying_logit_without_carriers,
        len(writers) > 0 AND coalesce(
            abs(induction_copying_logit_without) <= abs(joint_checks.induction_copying_logit) / 2
            OR induction_copying_logit_without * joint_checks.induction_copying_logit < 0,
            false
        ) AS is_carried,
        virtual_heads.copying_eigenvalues AS carried_copying_eigenvalues
    FROM joint_checks
    LEFT JOIN virtual_heads
        ON virtual_heads.model_id = joint_checks.model_id
        AND head_label(first_layer, first_head) = writers[1]
        AND (second_layer, second_head) = (reader_layer, reader_head)
    WHERE kind = 'V'
),
members AS (
    SELECT model_id, layer, head, kind, unnest(writers) AS label, generate_subscripts(writers, 1) AS place
    FROM circuits
),
composed AS (
    SELECT
        *,
        head_label(writer_layer, writer_head) AS label,
        rank() OVER (PARTITION BY model_id, reader_layer, reader_head, kind ORDER BY round(z, 1) DESC) AS z_rank
    FROM last_compositions
),
joined AS (
    SELECT
        members.model_id,
        members.layer,
        members.head,
        list(if(members.kind = 'K', previous_token, duplicate_token) ORDER BY place) AS writer_attention,
        list(writer.positional_offset ORDER BY place) AS writer_offsets,
        list(composed.z ORDER BY place) AS writer_z,
        list(checks.prefix_matching_without ORDER BY place) AS prefix_matching_without_each,
        min(composed.score) FILTER (place = 1) AS score,
        min(z_rank) FILTER (place = 1) AS z_rank,
        min(composed.matching_eigenvalues) FILTER (place = 1) AS matching_eigenvalues
    FROM members
    LEFT JOIN head_summary AS writer USING (model_id, label)
    LEFT JOIN composed
        ON (composed.model_id, composed.label, composed.kind) = (members.model_id, members.label, members.kind)
        AND (composed.reader_layer, composed.reader_head) = (members.layer, members.head)
    LEFT JOIN causal_checks AS checks
        ON (checks.model_id, checks.kind) = (members.model_id, members.kind)
        AND head_label(checks.writer_layer, checks.writer_head) = members.label
        AND (checks.reader_layer, checks.reader_head) = (members.layer, members.head)
    GROUP BY members.model_id, members.layer, members.head
),
composing AS (
    SELECT
        composed.model_id,
        composed.reader_layer AS layer,
        composed.reader_head AS head,
        coalesce(list(composed.label ORDER BY z DESC, composed.label) FILTER (is_other), []) AS also_compose,
        list(if(composed.kind = 'K', previous_token, duplicate_token) ORDER BY z DESC, composed.label)
            FILTER (is_other) AS also_compose_attention,
        list(checks.prefix_matching_without ORDER BY z DESC, composed.label) FILTER (is_other) AS also_compose_without
    FROM (
        SELECT composed.*, composed.significant AND NOT list_contains(writers, composed.label) AS is_other
        FROM composed
        JOIN circuits
            ON (circuits.model_id, circuits.kind, circuits.layer, circuits.head)
            = (composed.model_id, composed.kind, composed.reader_layer, composed.reader_head)
    ) AS composed
    LEFT JOIN head_summary AS other ON (other.model_id, other.label) = (composed.model_id, composed.label)
    LEFT JOIN causal_checks AS checks
        ON (checks.model_id, checks.kind) = (composed.model_id, composed.kind)
        AND head_label(checks.writer_layer, checks.writer_head) = composed.label
        AND (checks.reader_layer, checks.reader_head) = (composed.reader_layer, composed.reader_head)
    GROUP BY composed.model_id, composed.reader_layer, composed.reader_head
),
score_shares AS (
    SELECT circuits.model_id, circuits.layer, circuits.head, sum(share) AS score_share
    FROM circuits
    JOIN last_score_terms USING (model_id, layer, head)
    WHERE list_contains(writers, if(kind = 'K', key_source, query_source))
    GROUP BY ALL
),
formations AS (
    SELECT
        readers.model_id,
        readers.layer,
        readers.head,
        min(heads.step) AS formed_step,
        min(evaluations.tokens) AS formed_tokens
    FROM readers
    JOIN heads USING (model_id, layer, head)
    LEFT JOIN evaluations ON (evaluations.model_id, evaluations.step) = (heads.model_id, heads.step)
    WHERE readers.role = 'induction' AND heads.induction_random_period >= readers.induction_random_period / 2
    GROUP BY ALL
)
SELECT
    named_models.*,
    readers.label AS reader,
    readers.role AS reader_role,
    coalesce(is_strongest, true) AS is_strongest,
    readers.induction_random_period,
    readers.induction_copying_logit,
    readers.prefix_matching,
    last_heads.copying_eigenvalues,
    last_heads.copying_eigenvalues >= clear_eigenvalues() AS copies,
    n_earlier,
    kind,
    writers,
    len(writers)::INTEGER AS n_writers,
    writers[1] AS writer,
    writer_attention,
    writer_offsets,
    writer_z,
    score,
    writer_z[1] AS z,
    z_rank,
    also_compose,
    also_compose_attention,
    also_compose_without,
    joined.matching_eigenvalues,
    joined.matching_eigenvalues >= clear_eigenvalues() AS matches,
    score_share,
    circuits.prefix_matching_without,
    prefix_matching_without_each,
    circuits.induction_random_period_without,
    circuits.loss_effect_nats,
    depends,
    carriers,
    copying_logit_without_carriers,
    is_carried,
    carried_copying_eigenvalues,
    formed_step,
    formed_tokens,
    CASE
        WHEN named_models.n_layers < 2 OR n_earlier = 0 OR reader_role <> 'induction' OR n_writers = 0 THEN false
        ELSE depends
    END AS found,
    CASE WHEN n_earlier = 0 OR n_writers = 0 THEN false ELSE kind = 'K' AND depends AND matches AND (copies OR is_carried) END
        AS is_complete
FROM named_models
LEFT JOIN readers USING (model_id)
LEFT JOIN last_heads USING (model_id, layer, head)
LEFT JOIN circuits USING (model_id, layer, head)
LEFT JOIN carrying USING (model_id, layer, head)
LEFT JOIN joined USING (model_id, layer, head)
LEFT JOIN composing USING (model_id, layer, head)
LEFT JOIN score_shares USING (model_id, layer, head)
LEFT JOIN formations USING (model_id, layer, head)
ORDER BY named_models.name, named_models.seed, model_id, is_strongest DESC, reader
