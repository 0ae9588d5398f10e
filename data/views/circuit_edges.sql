-- Which edges carry a behaviour? One row an edge that is in the circuit of a prompt set, or was patched by itself.
--
-- named_models.*
-- prompts: the prompt set
-- writer: prompt_edges.writer
-- reader: prompt_edges.reader
-- port: prompt_edges.port
-- share: prompt_edges.share; NULL if it wasn't patched
-- share_low: prompt_edges.share_low
-- share_high: prompt_edges.share_high
-- score_share: prompt_edges.score_nats over the whole difference between the prompts
-- surely_in: prompt_edges.surely_in
-- in_circuit: prompt_edges.in_circuit
-- resampled: prompt_edges.resampled
SELECT
    named_models.*,
    prompts,
    writer,
    reader,
    port,
    share,
    share_low,
    share_high,
    score_nats / difference_nats AS score_share,
    surely_in,
    in_circuit,
    resampled
FROM prompt_edges
JOIN (FROM prompt_scores QUALIFY step = max(step) OVER (PARTITION BY model_id, prompts)) USING (model_id, prompts)
JOIN named_models USING (model_id)
ORDER BY prompts, named_models.name, named_models.seed, model_id, abs(coalesce(share, score_share)) DESC, writer, reader, port
