-- The study: what was asked, and the run that answered it.
SELECT study, question, n_models, n_failed, headstream_version, git_commit, started_at, finished_at, config, written
FROM studies
WHERE study = $study
