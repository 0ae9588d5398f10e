-- The edges of each behaviour's circuit, and those that are surely in it, of the model that stands for each label.
SELECT
    label,
    labelled_models.n_layers,
    prompts,
    writer,
    reader,
    port,
    coalesce(share, score_share) AS share,
    share IS NOT NULL AS is_exact,
    coalesce(surely_in, false) AS surely_in,
    in_circuit
FROM labelled_models
JOIN circuit_edges USING (model_id)
WHERE study = $study AND stands_for_label AND (in_circuit OR surely_in)
ORDER BY prompts, label, abs(coalesce(share, score_share)) DESC, writer, reader, port
