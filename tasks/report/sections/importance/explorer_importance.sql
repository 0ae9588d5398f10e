-- Every score of how much a head matters, and its rank within the model.
SELECT model_id, layer, head, method, score, rank
FROM importance
SEMI JOIN (FROM study_models WHERE study = $study) USING (model_id)
ORDER BY model_id, layer, head, method
