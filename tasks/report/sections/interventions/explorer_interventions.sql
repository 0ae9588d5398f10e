-- What was done to a model in training, which model is its base, and by how much it is late; begins and ends count tokens.
SELECT
    model_id,
    what,
    done,
    kind,
    head,
    base_model_id,
    base_reader,
    delay_log2,
    is_censored,
    begins,
    ends
FROM intervention_effects
LEFT JOIN (
    SELECT
        model_id,
        list_sort(list_distinct(list(from_tokens))) AS begins,
        list_sort(list_distinct(list(until_tokens))) AS ends -- without those that don't end
    FROM interventions
    GROUP BY model_id
) USING (model_id)
WHERE study = $study
ORDER BY model_id
