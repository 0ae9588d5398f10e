-- Each head's strongest skip-trigrams, and whether the corpus agrees.
SELECT model_id, layer, head, skip_trigram, qk_effect, ov_effect, verdict
FROM skip_trigram_summary
SEMI JOIN (FROM study_models WHERE study = $study) USING (model_id)
WHERE rank < 12
ORDER BY model_id, layer, head, rank
