-- One row an earlier head, a later head and a way to compose: compositions at each model's last checkpoint.
--
-- compositions.*
FROM compositions
QUALIFY step = max(step) OVER (PARTITION BY model_id)
