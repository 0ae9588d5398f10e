-- Do models that differ in their seed alone do a behaviour by the same circuit? One row two such models and a prompt set that both can
-- do. Heads of one are matched with those of the other by what they attend to, as in head_matches; at random, any head of a layer
-- with any of that layer in the other. Models whose heads share keys and values have no row: groups of heads aren't matched.
--
-- named_models.*
-- other_model_id: models.model_id of the model with another seed
-- other_seed: its seed
-- prompts: the prompt set
-- n_edges: edges of the first model's circuit
-- n_other_edges: edges of the other's
-- n_shared: edges that are in both, once heads are matched
-- jaccard: n_shared over the edges that either has
-- jaccard_random: the same with heads matched at random, mean over 100 matchings
-- chance: share of random matchings, the real one counted in, by which the circuits share as much or more
-- effects_correlation: correlation of the shares of matched heads and feed-forward layers, node_effects.share
WITH circuits AS (
    SELECT model_id, prompts, writer, reader, port
    FROM prompt_edges
    WHERE in_circuit
        AND (model_id, prompts) NOT IN (
            SELECT (model_id, prompts) FROM prompt_edges WHERE regexp_matches(reader, '^L\d+G\d+$')
        )
),
pairs AS (
    SELECT DISTINCT head_matches.model_id, other_model_id, one.prompts
    FROM head_matches
    JOIN prompt_circuits AS one ON head_matches.model_id = one.model_id
    JOIN prompt_circuits AS other ON other_model_id = other.model_id AND one.prompts = other.prompts
    WHERE head_matches.model_id < other_model_id
),
heads_there AS (
    SELECT DISTINCT model_id, layer, head
    FROM heads
    SEMI JOIN (SELECT model_id FROM pairs UNION SELECT other_model_id FROM pairs) AS either USING (model_id)
),
drawn AS (  -- any order of the heads of a layer, the same each time this is asked
    SELECT
        model_id,
        draw,
        layer,
        head,
        row_number() OVER (PARTITION BY model_id, draw, layer ORDER BY md5(model_id || ' ' || draw || ' ' || layer || ' ' || head)) AS place
    FROM heads_there, range(1, 101) AS draws(draw)
),
matchings AS (
    SELECT model_id, other_model_id, 0 AS draw, head_label(layer, head) AS node, head_label(other_layer, other_head) AS other_node
    FROM head_matches
    WHERE model_id < other_model_id
    UNION ALL
    SELECT one.model_id, other.model_id, draw, head_label(one.layer, one.head), head_label(one.layer, other.head)
    FROM (SELECT DISTINCT model_id, other_model_id FROM pairs) AS compared
    JOIN (SELECT *, row_number() OVER (PARTITION BY model_id, layer ORDER BY head) AS place FROM heads_there) AS one
        ON compared.model_id = one.model_id
    JOIN drawn AS other ON compared.other_model_id = other.model_id AND one.layer = other.layer AND one.place = other.place
),
mapped AS (
    SELECT
        pairs.model_id,
        pairs.other_model_id,
        pairs.prompts,
        draws.draw,
        CASE WHEN regexp_matches(writer, '^L\d+H\d+$') THEN writers.other_node ELSE writer END AS writer,
        CASE WHEN regexp_matches(reader, '^L\d+H\d+$') THEN readers.other_node ELSE reader END AS reader,
        port
    FROM pairs
    CROSS JOIN range(0, 101) AS draws(draw)
    JOIN circuits USING (model_id, prompts)
    LEFT JOIN matchings AS writers
        ON pairs.model_id = writers.model_id AND pairs.other_model_id = writers.other_model_id
        AND draws.draw = writers.draw AND writer = writers.node
    LEFT JOIN matchings AS readers
        ON pairs.model_id = readers.model_id AND pairs.other_model_id = readers.other_model_id
        AND draws.draw = readers.draw AND reader = readers.node
),
sizes AS (SELECT model_id, prompts, count(*) AS n_edges FROM circuits GROUP BY ALL),
shared AS (
    SELECT mapped.model_id, mapped.other_model_id, mapped.prompts, draw, count(circuits.model_id) AS n_shared
    FROM mapped
    LEFT JOIN circuits
        ON mapped.other_model_id = circuits.model_id AND mapped.prompts = circuits.prompts
        AND mapped.writer = circuits.writer AND mapped.reader = circuits.reader AND mapped.port = circuits.port
    GROUP BY ALL
),
compared AS (
    SELECT
        shared.model_id,
        other_model_id,
        shared.prompts,
        any_value(one.n_edges) AS n_edges,
        any_value(other.n_edges) AS n_other_edges,
        any_value(n_shared) FILTER (draw = 0) AS n_shared,
        any_value(n_shared / (one.n_edges + other.n_edges - n_shared)) FILTER (draw = 0) AS jaccard,
        avg(n_shared / (one.n_edges + other.n_edges - n_shared)) FILTER (draw > 0) AS jaccard_random,
        list(n_shared) AS every_shared
    FROM shared
    JOIN sizes AS one ON shared.model_id = one.model_id AND shared.prompts = one.prompts
    JOIN sizes AS other ON other_model_id = other.model_id AND shared.prompts = other.prompts
    GROUP BY ALL
),
effects AS (
    SELECT pairs.model_id, pairs.other_model_id, pairs.prompts, corr(one.share, other.share) AS effects_correlation
    FROM pairs
    JOIN node_effects AS one ON pairs.model_id = one.model_id AND pairs.prompts = one.prompts
    LEFT JOIN matchings
        ON pairs.model_id = matchings.model_id AND pairs.other_model_id = matchings.other_model_id
        AND matchings.draw = 0 AND one.node = matchings.node
    JOIN node_effects AS other
        ON pairs.other_model_id = other.model_id AND pairs.prompts = other.prompts
        AND coalesce(other_node, one.node) = other.node
    GROUP BY ALL
)
SELECT
    named_models.*,
    other_model_id,
    others.seed AS other_seed,
    prompts,
    n_edges,
    n_other_edges,
    n_shared,
    jaccard,
    jaccard_random,
    len(list_filter(every_shared, lambda n: n >= n_shared)) / len(every_shared) AS chance,
    effects_correlation
FROM compared
JOIN named_models USING (model_id)
JOIN models AS others ON other_model_id = others.model_id
LEFT JOIN effects USING (model_id, other_model_id, prompts)
ORDER BY prompts, named_models.name, named_models.seed, model_id, other_seed, other_model_id
