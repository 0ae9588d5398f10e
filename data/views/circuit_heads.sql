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
into_it AS (
    SELECT
        model_id,
        prompts,
        reader AS node,
        string_agg(writer || if(port = 'in', '', ' by ' || port) || told, ', ' ORDER BY size DESC, writer, port) AS reads
    FROM told
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
SELECT named_models.*, prompts, node, role, share, restored_share, reads, writes_to
FROM node_effects
JOIN named_models USING (model_id)
LEFT JOIN (SELECT model_id, label AS node, role FROM head_roles) USING (model_id, node)
LEFT JOIN into_it USING (model_id, prompts, node)
LEFT JOIN out_of_it USING (model_id, prompts, node)
ORDER BY prompts, named_models.name, named_models.seed, model_id, abs(share) DESC, node
