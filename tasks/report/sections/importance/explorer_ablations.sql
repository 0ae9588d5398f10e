-- What ablating each head costs, later layers seeing it.
SELECT model_id, layer, head, method, loss_effect_nats, ci_low_nats, ci_high_nats
FROM ablations
SEMI JOIN (FROM study_models WHERE study = $study) USING (model_id)
WHERE ablated = 'head' AND scope = 'full'
ORDER BY model_id, layer, head, method
