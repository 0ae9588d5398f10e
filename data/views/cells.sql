-- Which models does a study have, where in its grid, and how did they turn out? One row a study and trained model.
-- Claims read it.
--
-- study: studies.study
-- cell: study_models.cell
-- models.*
-- model_summary.*
SELECT study, cell, models.*, validation_loss_nats, repeat_gain_nats, best_induction_random_period, learned
FROM study_models
JOIN models USING (model_id)
JOIN model_summary USING (model_id)
ORDER BY study, model_id
