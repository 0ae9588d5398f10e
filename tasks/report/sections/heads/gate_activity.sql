-- How often gates are open, by kind of token: means over heads and seeds, and the head that follows the token most.
WITH activity AS (
    SELECT label, model_id, layer, head, token_class, active_fraction
    FROM labelled_models
    JOIN gate_activity USING (model_id)
    WHERE study = $study
),
by_class AS (
    SELECT label, token_class, avg(active_fraction) AS active_fraction FROM activity GROUP BY label, token_class
),
spread AS (
    SELECT label, layer, head, max(active_fraction) - min(active_fraction) AS range
    FROM activity
    WHERE token_class <> 'bos'
    GROUP BY label, model_id, layer, head
),
most AS (
    SELECT label, arg_max(head_label(layer, head), range) AS follows_most, max(range) AS its_range
    FROM spread
    GROUP BY label
)
SELECT
    label AS model,
    max(active_fraction) FILTER (token_class = 'word') AS word,
    max(active_fraction) FILTER (token_class = 'number') AS number,
    max(active_fraction) FILTER (token_class = 'punctuation') AS punctuation,
    max(active_fraction) FILTER (token_class = 'space') AS space,
    max(active_fraction) FILTER (token_class = 'bos') AS bos,
    any_value(follows_most) AS head_that_follows_tokens_most,
    any_value(its_range) AS its_range
FROM by_class
JOIN most USING (label)
GROUP BY label
ORDER BY label
