-- When each behaviour, its circuit and the circuit's edges passed half of their last values, in the model that stands for each label.
SELECT
    prompts,
    label AS model,
    if(
        followed = 'an edge', writer || ' to ' || if(port = 'in', '', port || ' of ') || reader, followed
    ) AS followed,
    last_nats,
    below_half_tokens,
    if(below_half_tokens IS NULL, 'never below', NULL) AS below_half_tokens_note,
    half_tokens,
    could_tokens AS shown_to_do_it_tokens,
    phase_start_tokens,
    if(phase_start_tokens IS NULL, 'no abrupt rise', NULL) AS phase_start_tokens_note,
    phase_end_tokens,
    if(phase_end_tokens IS NULL, 'no abrupt rise', NULL) AS phase_end_tokens_note
FROM labelled_models
JOIN circuit_formation USING (model_id)
WHERE study = $study AND stands_for_label
ORDER BY prompts, labelled_models.n_layers DESC, label, circuit_formation.followed = 'an edge', circuit_formation.followed DESC,
    abs(last_nats) DESC, writer, reader, port
