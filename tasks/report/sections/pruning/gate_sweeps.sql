-- What gates leave open at each penalty, and the loss then; in the model that stands for each label.
SELECT
    label AS model,
    penalty_nats AS penalty_a_head_nats,
    n_open || ' of ' || n_gates AS gates_open,
    intact_loss_nats,
    gated_loss_nats,
    folded_loss_nats,
    binarised_loss_nats
FROM labelled_models
JOIN gate_sweeps USING (model_id)
JOIN (SELECT model_id, penalty_nats, count(*) AS n_gates FROM gates GROUP BY ALL) USING (model_id, penalty_nats)
WHERE study = $study AND stands_for_label
ORDER BY n_gates DESC, label, penalty_nats
