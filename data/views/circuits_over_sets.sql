-- Does a model do two behaviours by the same edges? One row a model and two prompt sets that it can do, both ways, last checkpoint.
--
-- named_models.*
-- prompts: the prompt set that is measured
-- corrupted: the other prompt set, whose circuit is corrupted
-- n_edges: circuit_drops.n_edges
-- n_shared: circuit_drops.n_shared
-- jaccard: n_shared over the edges that either circuit has
-- drop_share: circuit_drops.drop_share
-- drop_low: circuit_drops.drop_low
-- drop_high: circuit_drops.drop_high
-- drop_random: circuit_drops.drop_random
-- drop_of_own: drop_share of the measured set if its own whole circuit is corrupted
SELECT
    named_models.*,
    across.prompts,
    across.corrupted,
    across.n_edges,
    across.n_shared,
    across.n_shared / (across.n_edges + own.n_edges - across.n_shared) AS jaccard,
    across.drop_share,
    across.drop_low,
    across.drop_high,
    across.drop_random,
    own.drop_share AS drop_of_own
FROM circuit_drops AS across
JOIN circuit_drops AS own ON across.model_id = own.model_id AND across.prompts = own.prompts AND own.corrupted = own.prompts
JOIN named_models ON across.model_id = named_models.model_id
WHERE across.corrupted <> across.prompts
ORDER BY named_models.name, named_models.seed, across.model_id, across.prompts, across.corrupted
