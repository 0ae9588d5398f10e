-- How many of the skip-trigrams kept of each head are right, are bugs, or copy their source.
SELECT
    labelled_models.label,
    skip_trigram_summary.label AS head_label,
    count(*) AS n_kept,
    count(*) FILTER (verdict = 'right') AS n_right,
    count(*) FILTER (verdict = 'bug') AS n_bugs,
    count(*) FILTER (copies) AS n_copies
FROM labelled_models
JOIN skip_trigram_summary USING (model_id)
WHERE study = $study AND stands_for_label
GROUP BY ALL
ORDER BY ALL
