-- One row a head and pair of sources of its attention scores: score_terms at each model's last checkpoint.
--
-- score_terms.*
FROM score_terms
QUALIFY step = max(step) OVER (PARTITION BY model_id)
