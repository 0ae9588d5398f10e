-- One row a head of each model's last checkpoint: heads at that step.
--
-- heads.*
FROM heads
QUALIFY step = max(step) OVER (PARTITION BY model_id)
