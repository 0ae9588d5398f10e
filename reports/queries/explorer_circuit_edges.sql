-- Edges that are in the circuit of a prompt set, or were patched one by one: those with the largest scores first.
SELECT
    model_id,
    prompts,
    writer,
    reader,
    port,
    score_share,
    share,
    share_low,
    share_high,
    surely_in,
    in_circuit,
    resampled
FROM labelled_models
JOIN circuit_edges USING (model_id)
WHERE study = $study
ORDER BY model_id, prompts, in_circuit DESC, abs(score_share) DESC, writer, reader, port
