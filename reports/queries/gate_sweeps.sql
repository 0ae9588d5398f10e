-- What gates leave open at each penalty, and the loss then; in the model that stands for each label.
SELECT
    label AS model,
    penalty_nats AS penalty_a_head_nats,
    n_open || ' of ' || total_heads AS gates_open,
    intact_loss_nats,
    gated_loss_nats,
    folded_loss_nats,
    binarised_loss_nats
FROM labelled_models
JOIN gate_sweeps USING (model_id)
JOIN models USING (model_id)
WHERE study = $study AND stands_for_label
ORDER BY total_heads DESC, label, penalty_nats
