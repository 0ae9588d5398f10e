-- One row a model: what people want to know first, losses and scores at its last checkpoint.
--
-- evaluations.*
-- models.*
-- named_models.*
-- learned: whether it predicts better than the corpus' bigrams, without heads better than token frequencies; claims look only at models that do; NULL if not known
-- repeats_beyond_bigrams: corpus_repeats.beyond_bigrams_share of the longest context there that the model reads: what induction could add to bigrams on its text
-- has_induction_head: whether a head's role is induction; NULL if not measured
-- best_induction_random_period: of the model's heads, anti-induction heads apart, the highest induction_random_period
-- best_induction_head: the head with best_induction_random_period, like L1H3
-- best_prefix_matching: of the model's heads, the highest prefix_matching
-- best_previous_token: of the model's heads, the highest previous_token
-- best_previous_token_head: the head with the highest previous_token, like L0H2
-- best_previous_token_layer_0: of the heads of layer 0, the highest previous_token
-- best_previous_token_head_layer_0: the head of layer 0 with the highest previous_token
WITH last_evaluations AS (
    FROM evaluations QUALIFY step = max(step) OVER (PARTITION BY model_id)
),
repeats AS (
    SELECT model_id, max_by(beyond_bigrams_share, context) AS repeats_beyond_bigrams
    FROM models
    JOIN corpus_repeats USING (corpus_id)
    WHERE context <= n_ctx
    GROUP BY model_id
),
best AS (
    SELECT
        model_id,
        max(induction_random_period) FILTER (role <> 'anti-induction') AS best_induction_random_period,
        arg_max(label, induction_random_period) FILTER (role <> 'anti-induction') AS best_induction_head,
        if(count(induction_random_period) > 0, count(*) FILTER (role = 'induction') > 0, NULL) AS has_induction_head,
        max(prefix_matching) AS best_prefix_matching,
        max(previous_token) AS best_previous_token,
        arg_max(label, previous_token) AS best_previous_token_head,
        max(previous_token) FILTER (layer = 0) AS best_previous_token_layer_0,
        arg_max(label, previous_token) FILTER (layer = 0) AS best_previous_token_head_layer_0
    FROM head_roles
    GROUP BY model_id
)
SELECT
    model_id,
    models.name,
    studies,
    models.seed,
    models.n_layers,
    n_heads,
    heads_per_layer,
    models.total_heads,
    d_model,
    d_head,
    parameters,
    models.tokens,
    validation_loss_nats,
    validation_loss_nats < if(models.total_heads > 0, bigram_loss_nats, unigram_loss_nats) AS learned,
    in_context_learning_nats,
    repeat_gain_nats,
    repeats_beyond_bigrams,
    has_induction_head,
    best_induction_random_period,
    best_induction_head,
    best_prefix_matching,
    best_previous_token,
    best_previous_token_head,
    best_previous_token_layer_0,
    best_previous_token_head_layer_0,
    seconds,
    tokens_per_second
FROM models
JOIN named_models USING (model_id)
LEFT JOIN corpora USING (corpus_id)
LEFT JOIN last_evaluations USING (model_id)
LEFT JOIN repeats USING (model_id)
LEFT JOIN best USING (model_id)
ORDER BY models.name, models.seed, model_id
