-- Which heads and feed-forward layers carry a behaviour, and whom do they read? One row a node of a prompt set that the model can do,
-- the largest effect first.
--
-- named_models.*
-- prompts: the prompt set
-- node: node_effects.node
-- role: head_roles.role; NULL of feed-forward layers
-- share: node_effects.share
-- restored_share: node_effects.restored_share
-- reads: the edges into it that are in the circuit or surely in, with their shares, the largest first, like `L0H0 by K (0.98)`
-- writes_to: the edges out of it, in the same way
-- looks_from: node_effects.looks_from
-- looks_at: node_effects.looks_at
-- looks_share: node_effects.looks_share
-- direct_nats: node_effects.direct_nats
-- sentence: what the numbers say of it, in words: what is lost without it, what a head looks at and writes, the strongest edges into it
WITH told AS (
    SELECT
        model_id,
        prompts,
        writer,
        reader,
        port,
        abs(coalesce(share, score_share)) AS size,
        format(' ({:.2f})', coalesce(share, score_share)) AS told
    FROM circuit_edges
    WHERE in_circuit OR surely_in
),
of_groups AS (
    SELECT
        told.*,
        CAST(regexp_extract(reader, '^L(\d+)G', 1) AS INTEGER) AS layer,
        CAST(regexp_extract(reader, 'G(\d+)$', 1) AS INTEGER) AS key_value_group
    FROM told
    WHERE contains(reader, 'G')
),
by_reader AS (
    SELECT told.*, reader AS node
    FROM told
    WHERE NOT contains(reader, 'G')
    UNION ALL
    SELECT of_groups.* EXCLUDE (layer, key_value_group), head_label(layer, head) AS node
    FROM of_groups
    JOIN models USING (model_id)
    CROSS JOIN range(n_heads // n_key_value_heads) AS within (place)
    CROSS JOIN LATERAL (SELECT key_value_group * (n_heads // n_key_value_heads) + place AS head) AS own
),
into_it AS (
    SELECT
        model_id,
        prompts,
        node,
        string_agg(writer || if(port = 'in', '', ' by ' || port) || told, ', ' ORDER BY size DESC, writer, port) AS reads,
        list(
            writer
            || if(
                port = 'in', '',
                if(contains(reader, 'G'), ' by its group''s ', ' by its ')
                || CASE port WHEN 'Q' THEN 'queries' WHEN 'K' THEN 'keys' ELSE 'values' END
            )
            || told
            ORDER BY size DESC, writer, port
        ) FILTER (size >= 0.01) AS strongest
    FROM by_reader
    GROUP BY ALL
),
out_of_it AS (
    SELECT
        model_id,
        prompts,
        writer AS node,
        string_agg(
            if(port = 'in', '', port || ' of ') || reader || told, ', ' ORDER BY size DESC, reader, port
        ) AS writes_to
    FROM told
    GROUP BY ALL
)
SELECT
    named_models.*,
    prompts,
    node,
    role,
    share,
    restored_share,
    reads,
    writes_to,
    looks_from,
    looks_at,
    looks_share,
    direct_nats,
    CASE
        WHEN share IS NOT NULL
            THEN
                if(
                    share >= 0,
                    format('Without {}, {:.2f} of the difference is lost', node, share),
                    format('{} works against it: without it the difference is {:.2f} larger', node, -share)
                )
                || format(
                    ', and alone it {} {:.2f}.',
                    if(restored_share >= 0, 'puts back', 'takes away'), abs(restored_share)
                )
                || CASE
                    WHEN looks_at IS NULL THEN ''
                    WHEN looks_share >= 0.5 THEN
                    format(
                        ' In {:.0f} % of pairs it looks from {} at {}, with {:.2f} of its attention.',
                        100 * looks_share, looks_from, looks_at, looks_attention
                    )
                    ELSE ' It looks from and at different places in different pairs.'
                END
                || if(
                    coalesce(abs(direct_nats) > greatest(2 * direct_sem_nats, 0.05), false),
                    format(' It writes {:.2f} nats on the log-odds directly.', direct_nats), ''
                )
                || coalesce(' It reads ' || array_to_string(strongest[:3], ', ') || '.', '')
    END AS sentence
FROM node_effects
JOIN named_models USING (model_id)
LEFT JOIN (SELECT model_id, label AS node, role FROM head_roles) USING (model_id, node)
LEFT JOIN into_it USING (model_id, prompts, node)
LEFT JOIN out_of_it USING (model_id, prompts, node)
ORDER BY prompts, named_models.name, named_models.seed, model_id, abs(share) DESC, node
