-- The difference between prompts at each checkpoint, what of it the last checkpoint's circuit makes, and the scores of its edges, nats;
-- of the model that stands for each label.
WITH followed AS (
    SELECT
        model_id,
        prompts,
        step,
        'the model' AS followed,
        difference_nats AS nats,
        difference_low_nats AS low_nats,
        difference_high_nats AS high_nats
    FROM prompt_scores
    SEMI JOIN circuit_checkpoints USING (model_id, prompts)
    UNION ALL
    SELECT model_id, prompts, step, 'its circuit', circuit_nats, circuit_low_nats, circuit_high_nats
    FROM circuit_checkpoints
    UNION ALL
    SELECT
        model_id,
        prompts,
        step,
        writer || ' to ' || if(port = 'in', '', port || ' of ') || reader,
        score_nats,
        NULL,
        NULL
    FROM edge_checkpoints
)
SELECT label, labelled_models.n_layers, prompts, followed, step, tokens, nats, low_nats, high_nats
FROM labelled_models
JOIN followed USING (model_id)
JOIN evaluations USING (model_id, step)
WHERE study = $study AND stands_for_label
ORDER BY prompts, label, followed, step
