-- Eigenvalues of every head and the score they come to: OV copies, QK matches, K-composed matches through the earlier head that keys read most; the model that stands for each label.
SELECT
    label,
    head_label(layer, head) AS head_label,
    layer,
    head,
    circuit,
    head_label(eigenvalues.writer_layer, eigenvalues.writer_head) AS writer,
    real,
    imaginary,
    CASE circuit
        WHEN 'OV' THEN last_heads.copying_eigenvalues
        WHEN 'QK' THEN last_heads.matching_eigenvalues
        ELSE last_compositions.matching_eigenvalues
    END AS eigenvalue_score,
    eigenvalue_score >= clear_eigenvalues() AS is_clear
FROM labelled_models
JOIN eigenvalues USING (model_id)
LEFT JOIN last_heads USING (model_id, layer, head)
LEFT JOIN last_compositions
    ON last_compositions.model_id = eigenvalues.model_id
    AND kind = 'K'
    AND (last_compositions.writer_layer, last_compositions.writer_head)
    = (eigenvalues.writer_layer, eigenvalues.writer_head)
    AND (reader_layer, reader_head) = (layer, head)
WHERE study = $study AND stands_for_label
ORDER BY label, layer, head, circuit, eigenvalues.rank
