-- Eigenvalues of every head's circuits.
SELECT model_id, layer, head, circuit, real, imaginary, writer_layer, writer_head
FROM eigenvalues
SEMI JOIN (FROM study_models WHERE study = $study) USING (model_id)
ORDER BY model_id, layer, head, circuit, rank
