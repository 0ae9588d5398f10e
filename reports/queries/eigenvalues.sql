-- Eigenvalues of every head: OV copies, QK matches, K-composed matches through the earlier head that keys read most; the model that stands for each label.
SELECT
    label,
    'L' || layer || 'H' || head AS head_label,
    layer,
    head,
    circuit,
    'L' || writer_layer || 'H' || writer_head AS writer,
    real,
    imaginary
FROM labelled_models
JOIN eigenvalues USING (model_id)
WHERE study = $study AND stands_for_label
ORDER BY label, layer, head, circuit, rank
