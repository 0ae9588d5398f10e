-- Does a model do two behaviours by the same edges? One row a model and two prompt sets that it can do, both ways, last checkpoint. What is
-- lost of one set is of edges patched one by one: all of them together were not run.
--
-- named_models.*
-- prompts: the prompt set that is measured
-- other: the other prompt set
-- n_edges: edges in the circuit of the measured set
-- n_other_edges: edges in that of the other
-- n_shared: edges that are in both
-- jaccard: n_shared over the edges that either circuit has
-- n_only_other: edges of the other's circuit that the measured set's has not
-- n_patched: of these, edges that were patched on the measured set
-- n_needed: of these, edges that are surely in on the measured set
-- largest_share: the largest share of the measured set's difference that is lost if one of these is patched
-- largest_low: lower end of its 95 % interval
-- largest_high: upper end
-- effects_correlation: correlation of what heads and feed-forward layers are worth on the two sets, node_effects.share
WITH pairs AS (
    SELECT one.model_id, one.prompts, other.prompts AS other
    FROM prompt_circuits AS one
    JOIN prompt_circuits AS other ON one.model_id = other.model_id AND one.prompts <> other.prompts
),
circuits AS (FROM prompt_edges WHERE in_circuit),
sizes AS (SELECT model_id, prompts, count(*) AS n_edges FROM circuits GROUP BY ALL),
edges AS (  -- of the other's circuit, as the measured set has them
    SELECT pairs.model_id, pairs.prompts, pairs.other, coalesce(own.in_circuit, false) AS is_shared, own.* EXCLUDE (model_id, prompts)
    FROM pairs
    JOIN circuits ON pairs.model_id = circuits.model_id AND pairs.other = circuits.prompts
    LEFT JOIN prompt_edges AS own
        ON pairs.model_id = own.model_id AND pairs.prompts = own.prompts
        AND circuits.writer = own.writer AND circuits.reader = own.reader AND circuits.port = own.port
),
compared AS (
    SELECT
        model_id,
        prompts,
        other,
        count(*) AS n_other_edges,
        count(*) FILTER (is_shared) AS n_shared,
        count(*) FILTER (NOT is_shared) AS n_only_other,
        count(share) FILTER (NOT is_shared) AS n_patched,
        count(*) FILTER (NOT is_shared AND surely_in) AS n_needed,
        max(share) FILTER (NOT is_shared) AS largest_share,
        arg_max(share_low, share) FILTER (NOT is_shared) AS largest_low,
        arg_max(share_high, share) FILTER (NOT is_shared) AS largest_high
    FROM edges
    GROUP BY ALL
),
effects AS (
    SELECT pairs.model_id, pairs.prompts, pairs.other, corr(one.share, two.share) AS effects_correlation
    FROM pairs
    JOIN node_effects AS one ON pairs.model_id = one.model_id AND pairs.prompts = one.prompts
    JOIN node_effects AS two ON pairs.model_id = two.model_id AND pairs.other = two.prompts AND one.node = two.node
    GROUP BY ALL
)
SELECT
    named_models.*,
    prompts,
    other,
    n_edges,
    n_other_edges,
    n_shared,
    n_shared / (n_edges + n_other_edges - n_shared) AS jaccard,
    n_only_other,
    n_patched,
    n_needed,
    largest_share,
    largest_low,
    largest_high,
    effects_correlation
FROM compared
JOIN sizes USING (model_id, prompts)
JOIN named_models USING (model_id)
LEFT JOIN effects USING (model_id, prompts, other)
ORDER BY named_models.name, named_models.seed, model_id, prompts, other
