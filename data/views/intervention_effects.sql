-- What did an intervention in training change? One row a study and model that had one, or has smeared keys, beside its base: the
-- same model without, of the same seed. A model is formed when its best head first has half of the induction_random_period that
-- its base's best head ends with; between checkpoints that is interpolated in log tokens.
--
-- named_models.*
-- study: studies.study
-- cell: study_models.cell
-- done: models.interventions, or `smeared keys`
-- what: the same for all seeds, with a head's role in the base instead of its name, like `silence the writer`
-- kind: interventions.kind, if there is one intervention; smear; or several
-- head: the head that it is done to, if it is one, like L0H2
-- base_model_id: models.model_id of the base
-- base_reader: the base's induction head; NULL if it has none
-- base_writer: the head that this reads most by its keys; NULL if none is known
-- from_tokens: tokens trained on when it begins
-- until_tokens: tokens trained on when it ends; NULL: it doesn't
-- tokens_to_form: tokens trained on when it is formed; NULL: not within trained_tokens, or the base has no induction head
-- base_tokens_to_form: the same of the base
-- trained_tokens: tokens trained on in all
-- is_censored: whether it isn't formed within trained_tokens, while the base is; NULL if the base has no induction head, or had formed when the intervention began
-- delay_log2: log2(tokens_to_form / base_tokens_to_form): 1 is twice as late; NULL if censored, or if is_censored is NULL
-- delay_at_least: delay_log2, or of a censored model the same with trained_tokens
-- tokens_after_release: of one that ended, tokens from until_tokens until it is formed; NULL if censored, or formed before
-- induction_random_period: best_induction_random_period of model_summary, as trained
-- base_induction_random_period: the base's best_induction_random_period
-- set_free_induction: the highest induction_random_period of the last checkpoint when set free; NULL if nothing is done to it there
-- repeat_gain_difference: repeat_gain_nats less the base's, nats
-- loss_difference: validation loss less the base's, nats per token
-- best_head: the best head, as in model_summary
-- base_best_head: the base's
-- other_best: the highest induction_random_period of a head that nothing is done to
-- other_best_head: that head
-- writer: the head that its own induction head reads most by its keys; NULL if it has none, or none is known
WITH members AS (
    SELECT
        study,
        cell,
        model_id,
        models.tokens AS trained_tokens,
        without_axes(cell, 'interventions|key_smearing') AS place,
        coalesce(interventions, if(key_smearing, 'smeared keys', NULL)) AS done,
        model_summary.seed,
        best_induction_random_period,
        best_induction_head,
        model_summary.repeat_gain_nats,
        model_summary.validation_loss_nats
    FROM study_models
    JOIN models USING (model_id)
    JOIN model_summary USING (model_id)
),
readers AS (
    SELECT model_id, reader, if(kind = 'K', writer, NULL) AS writer
    FROM induction_circuits
    WHERE is_strongest AND reader_role = 'induction'
),
acts AS (
    SELECT
        model_id,
        if(count(*) = 1, any_value(kind), 'several') AS kind,
        if(count(*) = 1 AND any_value(len(heads)) = 1, any_value(heads[1]), NULL) AS head,
        list_distinct(flatten(list(heads) FILTER (heads IS NOT NULL))) AS heads,
        min(from_tokens) AS from_tokens,
        if(count(*) = count(until_tokens), max(until_tokens), NULL) AS until_tokens
    FROM interventions
    GROUP BY model_id
),
best AS (
    SELECT model_id, evaluations.tokens, max(induction_random_period) AS score
    FROM heads
    JOIN evaluations USING (model_id, step)
    GROUP BY ALL
),
curves AS (
    SELECT *, lag(tokens) OVER (PARTITION BY model_id ORDER BY tokens) AS tokens_before, lag(score) OVER (PARTITION BY model_id ORDER BY tokens) AS score_before
    FROM best
),
pairs AS (
    SELECT
        own.*,
        base.model_id AS base_model_id,
        base.best_induction_random_period AS base_induction_random_period,
        base.best_induction_head AS base_best_head,
        own.repeat_gain_nats - base.repeat_gain_nats AS repeat_gain_difference,
        own.validation_loss_nats - base.validation_loss_nats AS loss_difference,
        readers.reader AS base_reader,
        readers.writer AS base_writer
    FROM members AS own
    JOIN members AS base USING (study, place)
    LEFT JOIN readers ON readers.model_id = base.model_id
    WHERE own.done IS NOT NULL AND base.done IS NULL
),
crossings AS (
    SELECT
        pairs.study,
        pairs.model_id,
        curves.model_id AS of_model,
        min_by(
            if(
                coalesce(tokens_before, 0) > 0 AND score > score_before,
                tokens_before * pow(tokens / tokens_before, (base_induction_random_period / 2 - score_before) / (score - score_before)),
                tokens
            ),
            tokens
        ) AS formed
    FROM pairs
    JOIN curves ON curves.model_id IN (pairs.model_id, pairs.base_model_id)
    WHERE base_reader IS NOT NULL AND score >= base_induction_random_period / 2
    GROUP BY ALL
),
others AS (
    SELECT pairs.study, pairs.model_id, max(induction_random_period) AS other_best, arg_max(head_label(layer, last_heads.head), induction_random_period) AS other_best_head
    FROM pairs
    JOIN last_heads USING (model_id)
    LEFT JOIN acts USING (model_id)
    WHERE NOT coalesce(list_contains(heads, head_label(layer, last_heads.head)), false)
    GROUP BY ALL
),
freed AS (
    SELECT model_id, max(induction_random_period) AS set_free_induction
    FROM (FROM set_free_heads QUALIFY step = max(step) OVER (PARTITION BY model_id))
    JOIN models USING (model_id)
    WHERE step = steps
    GROUP BY model_id
),
told AS (
    SELECT
        pairs.*,
        coalesce(acts.kind, 'smear') AS kind,
        acts.head,
        CASE
            WHEN acts.head = base_reader THEN 'the induction head'
            WHEN acts.head = base_writer AND acts.kind IN ('silence', 'freeze') THEN 'the writer'
            WHEN base_reader IS NOT NULL AND acts.kind IN ('silence', 'freeze')
                THEN 'another head of layer ' || regexp_extract(acts.head, 'L(\d+)', 1)
            WHEN acts.head IS NOT NULL THEN 'a head of layer ' || regexp_extract(acts.head, 'L(\d+)', 1)
        END AS head_told,
        from_tokens,
        until_tokens,
        own.formed AS tokens_to_form,
        of_base.formed AS base_tokens_to_form
    FROM pairs
    LEFT JOIN acts USING (model_id)
    LEFT JOIN crossings AS own ON (own.study, own.model_id, own.of_model) = (pairs.study, pairs.model_id, pairs.model_id)
    LEFT JOIN crossings AS of_base
        ON (of_base.study, of_base.model_id, of_base.of_model) = (pairs.study, pairs.model_id, pairs.base_model_id)
)
SELECT
    named_models.*,
    told.study,
    cell,
    done,
    if(head_told IS NULL, done, replace(done, told.head, head_told)) AS what,
    told.kind,
    told.head,
    base_model_id,
    base_reader,
    base_writer,
    from_tokens,
    until_tokens,
    tokens_to_form,
    base_tokens_to_form,
    trained_tokens,
    if(base_tokens_to_form >= coalesce(from_tokens, 0), tokens_to_form IS NULL, NULL) AS is_censored,
    if(base_tokens_to_form >= coalesce(from_tokens, 0), log2(tokens_to_form / base_tokens_to_form), NULL) AS delay_log2,
    if(
        base_tokens_to_form >= coalesce(from_tokens, 0),
        log2(coalesce(tokens_to_form, trained_tokens) / base_tokens_to_form),
        NULL
    ) AS delay_at_least,
    if(tokens_to_form >= until_tokens, tokens_to_form - until_tokens, NULL) AS tokens_after_release,
    best_induction_random_period AS induction_random_period,
    base_induction_random_period,
    set_free_induction,
    repeat_gain_difference,
    loss_difference,
    best_induction_head AS best_head,
    base_best_head,
    other_best,
    other_best_head,
    readers.writer
FROM told
JOIN named_models USING (model_id)
LEFT JOIN others ON (others.study, others.model_id) = (told.study, told.model_id)
LEFT JOIN freed USING (model_id)
LEFT JOIN readers ON readers.model_id = told.model_id
ORDER BY told.study, what, told.seed, told.done, model_id
