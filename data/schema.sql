-- The warehouse's tables: the one place that decides their names, types, keys and units.
--
-- Text after `--` above a CREATE, or after a column, becomes the COMMENT of that table, macro or column.
-- To add a table, write it here; `python -m headstream.tasks.results.table_reference` then brings data/README.md up to date.
-- A column that names nodes of the model ends in a mark, by which rows about heads that training removed are left out:
-- [node] if it holds a label, like L0H3, L0MLP or embedding, or a list of labels (it may hold other text, too);
-- [head of LAYER] if it holds a head's number within the layer that column LAYER holds, [head of LAYER in MODEL] if that is a
-- head of another model, which column MODEL holds.
-- Losses are nats per token, fractions and scores 0..1, timestamps UTC. NULL is "not measured", never 0.

-- 97.5 % quantile of Student's t with df degrees of freedom: from a table up to 30, then its expansion around the normal.
CREATE MACRO t_975(df) AS coalesce(
    [12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
     2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
     2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423][df],
    1.95996 + 2.37227 / df + 2.82250 / (df * df)
);

-- Aggregate: half the width of the 95 % confidence interval of a mean, t sd / sqrt(n); NULL for fewer than 3 values.
CREATE MACRO ci95(x) AS CASE WHEN count(x) > 2 THEN t_975(count(x) - 1) * stddev_samp(x) / sqrt(count(x)) END;

-- How often a standard normal number is above z: an upper bound, at most 0.6 % too high from z = 2 on. 1 up to z = 0.
-- Source: Sampford 1953, Some Inequalities on Mill's Ratio.
CREATE MACRO normal_tail(z) AS
    CASE WHEN z > 0 THEN 4 * exp(-z * z / 2) / sqrt(2 * pi()) / (3 * z + sqrt(z * z + 8)) WHEN z <= 0 THEN 1 END;

-- A head as people write it, like L0H3.
CREATE MACRO head_label(layer, head) AS 'L' || layer || 'H' || head;

-- Attention from which a head has a role, 0..1: on what followed earlier copies of the current token (induction).
CREATE MACRO induction_attention() AS 0.2;

-- Attention from which a head has a role, 0..1: on the token before (previous token).
CREATE MACRO previous_token_attention() AS 0.4;

-- Attention from which a head has a role, 0..1: on earlier copies of the current token (duplicate token).
CREATE MACRO duplicate_token_attention() AS 0.3;

-- Attention from which a head has a role, 0..1: on BOS (BOS).
CREATE MACRO bos_attention_of_role() AS 0.5;

-- Share of queries whose most attended key is at one distance from which a head has a role, 0..1 (positional).
CREATE MACRO positional_share_of_role() AS 0.9;

-- Whether a mean is above 0 by more than the 95 % interval that its standard error over many parts gives.
CREATE MACRO clearly_positive(mean, sem) AS mean > 1.96 * sem;

-- Eigenvalue score, -1..1, from which a head clearly copies or matches.
CREATE MACRO clear_eigenvalues() AS 0.5;

-- The repeat_gain_nats from which on a model predicts repeats, nats: the least change that phase_changes calls one.
CREATE MACRO clear_repeat_gain() AS 0.2;

-- A rise is abrupt if tokens grow by less than this factor in its middle third, errors included. Without errors they grow by 2
-- where a score rises in proportion to them, by 1.4 where 80 % of its rise falls within a factor of 3.
CREATE MACRO abrupt_factor() AS 2.3;

-- A place in a study's grid without axes like `seed|n_layers`.
CREATE MACRO drop_axes(cell, axes) AS trim(regexp_replace(cell, '(^| )(' || axes || ')=(\[[^\]]*\]|\S*)', '', 'g'));

-- A place in a study's grid without its variant's name and without axes like `seed|n_heads`: equal where models differ in
-- these alone.
CREATE MACRO without_axes(cell, axes) AS drop_axes(cell, 'variant|' || axes);

-- Place of a verdict on a claim in lists: findings first, the decided ones before others, then descriptions and self-checks.
CREATE MACRO verdict_rank(verdict) AS list_position(
    ['holds', 'holds, as for random weights', 'fails', 'depends', 'undecided', 'described', 'passes', 'not tested'], verdict
);

-- One row a study: what was asked, and the run that answered it last.
CREATE TABLE studies (
    study               VARCHAR PRIMARY KEY,  -- name, as in its file in flows/studies
    question            VARCHAR,              -- what the study asks, in its author's words
    config              VARCHAR,              -- the whole validated study file, as JSON text
    written             VARCHAR,              -- the study as somebody wrote it: its file's text (TOML), or the given fields (JSON); NULL if an earlier release ran it
    git_commit          VARCHAR,              -- commit of the code that ran
    started_at          TIMESTAMP,            -- when the run began, UTC
    finished_at         TIMESTAMP,            -- when the run ended, UTC
    headstream_version  VARCHAR,              -- version of headstream that ran
    n_models            INTEGER,              -- models in the grid, failed ones included
    n_failed            INTEGER               -- models that failed
);

-- Whether a study measures its models by a stage like `pruning`; true if the study doesn't say.
CREATE MACRO measures(name, stage) AS coalesce(
    (SELECT list_contains((config -> '$.analysis.stages')::VARCHAR[], stage) FROM studies WHERE study = name), true
);

-- One row a model of a study, failed ones included; equal models of several studies are trained once and shared.
CREATE TABLE study_models (
    study     VARCHAR,  -- studies.study
    model_id  VARCHAR,  -- models.model_id; a model whose training failed has no row there
    cell      VARCHAR,  -- the model's place in the grid, like `n_layers=2 seed=0`
    status    VARCHAR,  -- trained, failed, or left out: there is no head of the role that it names
    failure   VARCHAR,  -- why it failed or was left out, in one line
    PRIMARY KEY (study, model_id)
);

-- One row a tokenised corpus.
CREATE TABLE corpora (
    corpus_id             VARCHAR PRIMARY KEY,  -- hash of the tokens
    source                VARCHAR,              -- built-in corpora, like `python-stdlib`, or the paths that were read
    documents             BIGINT,               -- documents read
    bytes                 BIGINT,               -- bytes of UTF-8 text
    empty                 BIGINT,               -- documents without text, which were left out
    skipped               BIGINT,               -- files, records, rows and parts that were left out, since they were bad
    replaced              BIGINT,               -- records and parts in which U+FFFD stands for what was no text
    left_out              BIGINT,               -- links to nothing, pipes, sockets and devices beside the files
    train_documents       BIGINT,               -- documents in the training split
    validation_documents  BIGINT,               -- documents in the validation split
    train_tokens          BIGINT,               -- tokens in the training split
    validation_tokens     BIGINT,               -- tokens in the validation split
    vocabulary            INTEGER,              -- tokens that the tokenizer knows, BOS included
    bytes_per_token       DOUBLE,               -- bytes of text that a token stands for, on average
    tokenizer_sha256      VARCHAR,              -- hash of the tokenizer file
    text_sha256           VARCHAR,              -- hash of the text
    unigram_loss_nats     DOUBLE,               -- loss on the validation split under the training split's token counts, nats per token
    bigram_loss_nats      DOUBLE                -- loss there under bigram counts (Witten-Bell), nats per token: to be beaten
);

-- One row a tokenised corpus and length of context: how much of validation text repeats what came shortly before, which is what an induction head can predict.
CREATE TABLE corpus_repeats (
    corpus_id             VARCHAR,  -- corpora.corpus_id
    context               INTEGER,  -- tokens looked back over, the current one included
    token_share           DOUBLE,   -- share of next tokens that followed the last earlier occurrence of the current token
    pair_share            DOUBLE,   -- share of them that followed the last earlier occurrence of the current two tokens
    beyond_bigrams_share  DOUBLE,   -- share of them that pairs predict, and the commonest successor of the current token in the training split doesn't
    PRIMARY KEY (corpus_id, context)
);

-- One row a trained model: its architecture, its training and what came of it.
CREATE TABLE models (
    model_id                    VARCHAR PRIMARY KEY,  -- name of the architecture, seed, and a hash of the cell and the weights
    corpus_id                   VARCHAR,              -- corpora.corpus_id
    name                        VARCHAR,              -- short name, like 2L4H
    n_layers                    INTEGER,              -- layers
    n_heads                     INTEGER,              -- heads in every layer; NULL if layers differ
    heads_per_layer             INTEGER[],            -- heads in each layer
    total_heads                 INTEGER,              -- heads in all layers
    n_key_value_heads           INTEGER,              -- keys and values in every layer, each shared by n_heads / n_key_value_heads neighbouring heads; NULL if each head has its own
    d_model                     INTEGER,              -- width of the residual stream
    d_head                      INTEGER,              -- width of queries and keys
    d_value                     INTEGER,              -- width of values
    n_ctx                       INTEGER,              -- positions in a sequence, BOS included
    positions                   VARCHAR,              -- relative, shortformer, learned_shortformer, rotary, learned, sinusoidal or none
    rotary_base                 DOUBLE,               -- base of the wavelengths of rotary positions; NULL with others
    rotary_fraction             DOUBLE,               -- share of d_head that rotary positions turn; NULL with others
    rotary_stretch              DOUBLE,               -- factor by which those wavelengths are stretched; NULL with others
    rotary_stretched_wavelengths DOUBLE[],            -- wavelengths up to which none is stretched, and from which on all are; NULL: all are
    windowed_rotary_base        DOUBLE,               -- base of rotary positions in windowed_layers; NULL: as in the others
    rotary_pairs                VARCHAR,              -- dimensions turned together: neighbouring or half-split; NULL with others
    normalization               VARCHAR,              -- none, layernorm or rmsnorm
    normalization_place         VARCHAR,              -- pre: before each sublayer; post: of the stream after it; output: of what it writes; both
    norm_epsilon                DOUBLE,               -- added to the variance or mean square in norms; NULL without norms
    norm_offset                 BOOLEAN,              -- whether norms multiply by 1 + weight
    feed_forward                VARCHAR,              -- none, relu, gelu, gelu_tanh, or gated: swiglu, geglu, geglu_tanh
    parallel_sublayers          BOOLEAN,              -- whether feed-forward layers read what entered their layer
    d_mlp                       INTEGER,              -- width of the feed-forward layers; NULL without them
    biases                      BOOLEAN,              -- whether linear maps have biases
    qkv_biases                  BOOLEAN,              -- whether queries, keys and values have biases, other maps or not
    output_biases               BOOLEAN,              -- whether attention outputs have biases, linear maps or not
    tied_embeddings             BOOLEAN,              -- whether W_U is the transpose of W_E
    embedding_scale             DOUBLE,               -- factor of W_E where tokens enter the stream
    qk_normalization            BOOLEAN,              -- whether queries and keys are normalised
    qk_normalization_over       VARCHAR,              -- what one norm of queries or keys spans: a head, or all heads of a layer
    attention                   VARCHAR,              -- keys that a query sees: full (all before it), local, strided or top_k
    attention_window            INTEGER,              -- keys that a query sees, its own included; NULL unless local or strided
    windowed_layers             INTEGER[],            -- layers with that window, from 0; queries see all keys before them in the others; NULL: all layers
    stride                      INTEGER,              -- positions between the keys that a query sees; NULL unless local or strided
    top_k                       INTEGER,              -- keys of highest score that count; NULL unless top_k
    key_smearing                BOOLEAN,              -- whether each key is a learned mixture of its own and of that before it
    score_scale                 DOUBLE,               -- factor of scores before softmax
    score_cap                   DOUBLE,               -- bound of scores before softmax; NULL: none
    logit_cap                   DOUBLE,               -- bound of logits; NULL: none
    gates                       VARCHAR,              -- on heads: none, hard_concrete (one a head) or dynamic (a token)
    seed                        INTEGER,              -- random seed of weights and batches
    tokens                      BIGINT,               -- tokens trained on
    batch_size                  INTEGER,              -- sequences a step
    optimizer                   VARCHAR,              -- optimiser of the attention matrices
    learning_rate               DOUBLE,               -- peak learning rate of AdamW
    muon_learning_rate          DOUBLE,               -- peak learning rate of Muon
    position_rate               DOUBLE,               -- how many times faster the relative position bias learns
    weight_decay                DOUBLE,               -- decoupled decay of AdamW's matrices, times its rate
    muon_weight_decay           DOUBLE,               -- decoupled decay of Muon's matrices, times its rate
    warmup_steps                INTEGER,              -- steps of linear warm-up
    final_rate_fraction         DOUBLE,               -- fraction of their peak at which the learning rates' cosine ends
    gradient_clip               DOUBLE,               -- largest gradient norm
    repeats_fraction            DOUBLE,               -- fraction of training sequences that are repeated random tokens
    interventions               VARCHAR,              -- what was done to heads or to the loss in training, in words; NULL if nothing was
    prune_to                    DOUBLE,               -- share of heads that pruning while training leaves; 1 prunes none
    heads_left                  INTEGER[],            -- heads in each layer that pruning while training left
    gate_penalty                DOUBLE,               -- nats for each head expected open, or for the square of the heads off target
    active_fraction             DOUBLE,               -- share of heads that dynamic gates should open for a token
    gate_rate                   DOUBLE,               -- how many times faster gates learn
    checkpoints                 INTEGER,              -- checkpoints kept, the initialisation and the last included
    precision                   VARCHAR,              -- of matrix products in training: bfloat16 or float32
    compile                     BOOLEAN,              -- whether the training step was compiled
    threads                     INTEGER,              -- CPU threads used for training
    vocabulary                  INTEGER,              -- tokens embedded
    parameters                  BIGINT,               -- trained numbers
    steps                       INTEGER,              -- optimiser steps
    seconds                     DOUBLE,               -- wall time of training
    tokens_per_second           DOUBLE,               -- training speed, once warm
    device                      VARCHAR,              -- cpu or cuda
    final_train_loss_nats       DOUBLE,               -- training loss at the end, nats per token
    imported_from               VARCHAR,              -- format that the model came in, like `huggingface llama`; NULL if it was trained here
    imported_as                 VARCHAR               -- its name in [[models]]; NULL if it was trained here
);

-- One row an intervention in the training of a model.
CREATE TABLE interventions (
    model_id      VARCHAR,    -- models.model_id
    place         INTEGER,    -- its place in the list, from 1
    kind          VARCHAR,    -- silence, clamp, cut, freeze or unlearn
    heads         VARCHAR[],  -- heads that it is done to; NULL if it isn't done to heads [node]
    pattern       VARCHAR,    -- what clamped heads attend to; NULL for others
    edges         VARCHAR[],  -- edges that are cut, like `L0H0 -> L1H0.K`; NULL for others [node]
    which         VARCHAR,    -- tokens that have no loss: token, pair or beyond_bigrams, as in corpus_repeats; NULL for others
    from_tokens   BIGINT,     -- tokens trained on when it begins
    until_tokens  BIGINT,     -- tokens trained on when it ends; NULL: it doesn't
    PRIMARY KEY (model_id, place)
);

-- One row a logged training step.
CREATE TABLE training (
    model_id       VARCHAR,  -- models.model_id
    step           INTEGER,  -- optimiser steps taken
    tokens         BIGINT,   -- tokens seen so far
    loss_nats      DOUBLE,   -- training loss of the step, nats per token
    learning_rate  DOUBLE,   -- learning rate of AdamW at the step
    gradient_norm  DOUBLE,   -- gradient norm before clipping
    heads_left     INTEGER,  -- heads that pruning while training has left
    seconds        DOUBLE,   -- wall time since training began
    PRIMARY KEY (model_id, step)
);

-- One row a checkpoint: losses of the whole model. Step 0 is the initialisation.
CREATE TABLE evaluations (
    model_id                    VARCHAR,  -- models.model_id
    step                        INTEGER,  -- optimiser steps taken; 0 is the initialisation
    tokens                      BIGINT,   -- tokens seen so far
    validation_loss_nats        DOUBLE,   -- mean loss on validation text, nats per token
    validation_loss_sem_nats    DOUBLE,   -- standard error of validation_loss_nats over documents; NULL for less than two
    n_windows                   INTEGER,  -- sequences of validation text measured on
    n_documents                 INTEGER,  -- documents that they are from
    train_loss_nats             DOUBLE,   -- mean loss on as many sequences of training text, seen or not; last checkpoint only
    train_loss_sem_nats         DOUBLE,   -- standard error of train_loss_nats over documents
    in_context_learning_nats    DOUBLE,   -- loss at late_index minus loss at early_index, nats: negative if context helps
    in_context_learning_sem_nats DOUBLE,  -- standard error of in_context_learning_nats over documents
    early_index                 INTEGER,  -- prediction, counted from 0, around which the early loss is taken
    late_index                  INTEGER,  -- prediction, counted from 0, around which the late loss is taken
    first_occurrence_loss_nats  DOUBLE,   -- loss on first occurrences in repeated random tokens, random period, nats
    later_occurrence_loss_nats  DOUBLE,   -- loss on later occurrences in repeated random tokens, random period, nats
    repeat_gain_nats            DOUBLE,   -- loss on first minus later occurrences of repeats, nats: positive if predicted
    repeat_gain_sem_nats        DOUBLE,   -- standard error of repeat_gain_nats over sequences of repeats, nats
    PRIMARY KEY (model_id, step)
);

-- One row a checkpoint of a model to whose passes interventions do something there: its losses without them.
CREATE TABLE set_free (
    model_id              VARCHAR,  -- models.model_id
    step                  INTEGER,  -- optimiser steps taken
    tokens                BIGINT,   -- tokens seen so far
    validation_loss_nats  DOUBLE,   -- as in evaluations, without the interventions, nats per token
    repeat_gain_nats      DOUBLE,   -- as in evaluations, without the interventions, nats
    PRIMARY KEY (model_id, step)
);

-- One row a head at such a checkpoint, without the interventions.
CREATE TABLE set_free_heads (
    model_id                 VARCHAR,  -- models.model_id
    step                     INTEGER,  -- optimiser steps taken
    layer                    INTEGER,  -- counted from 0
    head                     INTEGER,  -- counted from 0 within its layer [head of layer]
    induction_random_period  DOUBLE,   -- as in heads, without the interventions
    PRIMARY KEY (model_id, step, layer, head)
);

-- One row a checkpoint and position of the predicted token.
CREATE TABLE position_losses (
    model_id   VARCHAR,  -- models.model_id
    step       INTEGER,  -- optimiser steps taken
    position   INTEGER,  -- prediction within the sequence, counted from 0
    loss_nats  DOUBLE,   -- mean loss on validation text, nats
    PRIMARY KEY (model_id, step, position)
);

-- One row a checkpoint and occurrence of a token in repeated random tokens of random period.
CREATE TABLE repeat_losses (
    model_id    VARCHAR,  -- models.model_id
    step        INTEGER,  -- optimiser steps taken
    occurrence  INTEGER,  -- 1 is the first time that the predicted token occurs
    loss_nats   DOUBLE,   -- mean loss, nats
    PRIMARY KEY (model_id, step, occurrence)
);

-- One row a head and checkpoint: every measure of a head that is a single number.
CREATE TABLE heads (
    model_id                       VARCHAR,  -- models.model_id
    step                           INTEGER,  -- optimiser steps taken; 0 is the initialisation
    layer                          INTEGER,  -- counted from 0
    head                           INTEGER,  -- counted from 0 within its layer [head of layer]
    previous_token                 DOUBLE,   -- mean attention on the token before, validation text
    previous_token_sem             DOUBLE,   -- standard error of previous_token over documents
    duplicate_token                DOUBLE,   -- attention on earlier copies of the current token, validation text, as induction_random_period beyond what place earns
    duplicate_token_sem            DOUBLE,   -- standard error of duplicate_token over documents
    prefix_matching                DOUBLE,   -- mean attention on what followed earlier copies, random tokens repeated 4 times
    prefix_matching_sem            DOUBLE,   -- standard error of prefix_matching over sequences of repeats
    induction_random_period        DOUBLE,   -- attention on what followed earlier copies, random period for each sequence, beyond what the same places get in other sequences, as a share of what could be: 0 for a fixed offset or position, up to 1
    induction_random_period_sem    DOUBLE,   -- standard error of induction_random_period over sequences of repeats
    induction_copying_logit        DOUBLE,   -- what the head itself adds to the logit of what follows, less its mean over tokens, random period, repeats alone
    induction_copying_logit_sem    DOUBLE,   -- standard error of induction_copying_logit over sequences of repeats
    induction_natural              DOUBLE,   -- as induction_random_period, on validation text, where the token occurred before
    induction_natural_sem          DOUBLE,   -- standard error of induction_natural over documents
    entropy                        DOUBLE,   -- entropy of the pattern, divided by that of attending evenly to visible keys
    entropy_without_bos            DOUBLE,   -- entropy, BOS not among the keys
    mean_distance                  DOUBLE,   -- mean distance attended back, positions
    mean_distance_without_bos      DOUBLE,   -- mean_distance, BOS not among the keys
    argmax_distance                DOUBLE,   -- mean distance back to the most attended key, positions
    argmax_distance_without_bos    DOUBLE,   -- argmax_distance, BOS not among the keys
    confidence                     DOUBLE,   -- mean largest weight of a query
    confidence_without_bos         DOUBLE,   -- confidence, BOS not among the keys
    bos_attention                  DOUBLE,   -- mean attention on BOS, over queries that see it
    positional_offset              INTEGER,  -- most frequent distance back to the most attended key, positions
    positional_share               DOUBLE,   -- fraction of queries whose most attended key is at positional_offset
    positional_offset_without_bos  INTEGER,  -- positional_offset, BOS not among the keys
    positional_share_without_bos   DOUBLE,   -- positional_share, BOS not among the keys
    copying_eigenvalues            DOUBLE,   -- eigenvalues of the full OV circuit: sum over sum of sizes, -1..1: 1 copies
    copying_top1                   DOUBLE,   -- fraction of tokens whose own output attending to them raises most, weights
    copying_top5                   DOUBLE,   -- fraction of tokens whose own output is among the 5 raised most
    copying_top1_weighted          DOUBLE,   -- copying_top1, tokens weighted by how often the corpus has them
    copying_top5_weighted          DOUBLE,   -- copying_top5, tokens weighted by how often the corpus has them
    copying_evaluator              DOUBLE,   -- share of what the head raises that is on seen tokens, -1 (none)..1 (all)
    matching_eigenvalues           DOUBLE,   -- copying_eigenvalues of the full QK circuit, -1..1: 1 looks for the query's own token
    qk_content_sd                  DOUBLE,   -- standard deviation over source tokens of what tokens add to scores
    qk_position_sd                 DOUBLE,   -- standard deviation over keys of what relative positions add to scores
    ov_rank                        INTEGER,  -- dimensions that the head can write: singular values of OV above rounding error
    ov_effective_rank              DOUBLE,   -- exp(entropy) of the squared singular values of OV, 1..ov_rank
    qk_rank                        INTEGER,  -- dimensions in which queries and keys meet: singular values of QK above rounding error
    qk_effective_rank              DOUBLE,   -- exp(entropy) of the squared singular values of QK, 1..qk_rank
    query_key_overlap              DOUBLE,   -- mean squared cosine of the angles between what queries and keys read
    query_value_overlap            DOUBLE,   -- mean squared cosine of the angles between what queries and values read
    key_value_overlap              DOUBLE,   -- mean squared cosine of the angles between what keys and values read
    persistence                    DOUBLE,   -- share of the head's output left in the final stream, 0 erased, 1 untouched
    active_fraction                DOUBLE,   -- fraction of tokens at which its gate is open, validation text
    PRIMARY KEY (model_id, step, layer, head)
);

-- One row a head with a gate and a class of token, last checkpoint, validation text.
CREATE TABLE gate_activity (
    model_id         VARCHAR,  -- models.model_id
    layer            INTEGER,  -- counted from 0
    head             INTEGER,  -- counted from 0 within its layer [head of layer]
    token_class      VARCHAR,  -- bos, word, number, punctuation or space: by the token's first visible character
    active_fraction  DOUBLE,   -- fraction of the class's tokens at which the gate is open
    PRIMARY KEY (model_id, layer, head, token_class)
);

-- One row an attention weight on a sample passage, last checkpoint; every head sees the same passage.
CREATE TABLE attention_samples (
    model_id     VARCHAR,  -- models.model_id
    layer        INTEGER,  -- counted from 0
    head         INTEGER,  -- counted from 0 within its layer [head of layer]
    query        INTEGER,  -- position that attends, counted from 0 (BOS)
    key          INTEGER,  -- position attended to, counted from 0 (BOS)
    query_token  VARCHAR,  -- text of the token at query
    key_token    VARCHAR,  -- text of the token at key
    weight       DOUBLE,   -- attention weight; a query's weights sum to 1
    PRIMARY KEY (model_id, layer, head, query, key)
);

-- One row a checkpoint, an earlier head, a later head and a way to compose; weights alone. A pair composes when its
-- score is above what a randomly turned earlier head gives and has risen since the initialisation, if that was kept.
CREATE TABLE compositions (
    model_id              VARCHAR,  -- models.model_id
    step                  INTEGER,  -- optimiser steps taken; 0 is the initialisation
    writer_layer          INTEGER,  -- layer of the earlier head
    writer_head           INTEGER,  -- the earlier head, counted from 0 within its layer [head of writer_layer]
    reader_layer          INTEGER,  -- layer of the later head
    reader_head           INTEGER,  -- the later head, counted from 0 within its layer [head of reader_layer]
    kind                  VARCHAR,  -- Q, K or V: which part of the later head reads the earlier one's output
    score                 DOUBLE,   -- norm of the product of both heads' matrices over the product of their norms, 0..1
    null_mean             DOUBLE,   -- mean of score^2 between heads turned at random, exact
    null_sd               DOUBLE,   -- standard deviation of score^2 between heads turned at random, exact
    z                     DOUBLE,   -- (score^2 - null_mean) / null_sd
    rotated_mean          DOUBLE,   -- mean of score^2 over random rotations of the earlier head's output
    rotated_sd            DOUBLE,   -- standard deviation of score^2 over these rotations
    initial_score         DOUBLE,   -- score at the initialisation; NULL if that was not kept
    rotated_chance        DOUBLE,   -- chance that a randomly turned earlier head scores as much
    initial_chance        DOUBLE,   -- chance that score^2 rises as much from its initialisation by turning alone; NULL if that was not kept
    significant           BOOLEAN,  -- whether both chances are small among all of the model's pairs and kinds (Holm)
    matching_eigenvalues  DOUBLE,   -- kind K only: heads.matching_eigenvalues if keys read the earlier head's output alone; NULL beyond matching_pairs, best first
    PRIMARY KEY (model_id, step, writer_layer, writer_head, reader_layer, reader_head, kind)
);

-- One row a skip-trigram (source ... destination -> output) that a head's weights hold, first and last checkpoint. A bug is
-- one that is rare in the corpus but forced on the head by two others that are not.
CREATE TABLE skip_trigrams (
    model_id            VARCHAR,  -- models.model_id
    step                INTEGER,  -- optimiser steps taken; 0 is the initialisation
    layer               INTEGER,  -- counted from 0
    head                INTEGER,  -- counted from 0 within its layer [head of layer]
    rank                INTEGER,  -- counted from 0, strongest first
    source              VARCHAR,  -- text of the token attended to
    destination         VARCHAR,  -- text of the token that attends
    output              VARCHAR,  -- text of the token that becomes likelier after destination
    qk_effect           DOUBLE,   -- attention score before softmax, less its mean over sources by frequency
    ov_effect           DOUBLE,   -- logit that attending to source adds to output, less its mean over outputs
    n_pairs             BIGINT,   -- how often destination occurs after source within a context, sampled training text
    corpus_probability  DOUBLE,   -- fraction of these n_pairs that output follows
    output_probability  DOUBLE,   -- fraction of all tokens that are output
    is_bug              BOOLEAN,  -- whether output is rare here but not in the two skip-trigrams that force this one
    other_destination   VARCHAR,  -- of a bug: the destination after which source does call for output
    other_output        VARCHAR,  -- of a bug: the output that source does call for after destination
    PRIMARY KEY (model_id, step, layer, head, rank)
);

-- One row an earlier and a later head and what the later one reads with, first and last checkpoint; weights alone.
CREATE TABLE subspaces (
    model_id        VARCHAR,  -- models.model_id
    step            INTEGER,  -- optimiser steps taken; 0 is the initialisation
    writer_layer    INTEGER,  -- layer of the earlier head
    writer_head     INTEGER,  -- the earlier head, counted from 0 within its layer [head of writer_layer]
    reader_layer    INTEGER,  -- layer of the later head
    reader_head     INTEGER,  -- the later head, counted from 0 within its layer [head of reader_layer]
    kind            VARCHAR,  -- Q, K or V: queries, keys or values of the later head
    overlap         DOUBLE,   -- mean squared cosine of the angles between the space written and the space read, 0..1
    random_overlap  DOUBLE,   -- overlap between random spaces of these dimensions, on average
    rewriting       DOUBLE,   -- kind V only: what the later head adds along the output that it reads, relative to it; -1 erases
    PRIMARY KEY (model_id, step, writer_layer, writer_head, reader_layer, reader_head, kind)
);

-- One row an eigenvalue of a head's full circuit, last checkpoint, without those that are 0 because heads are narrow.
-- K-composed: the QK circuit with keys that read, of the earlier heads, only the one it K-composes with most.
CREATE TABLE eigenvalues (
    model_id      VARCHAR,  -- models.model_id
    layer         INTEGER,  -- counted from 0
    head          INTEGER,  -- counted from 0 within its layer [head of layer]
    circuit       VARCHAR,  -- OV, QK or K-composed
    rank          INTEGER,  -- counted from 0, largest absolute value first
    real          DOUBLE,   -- real part: positive copies (OV) or matches (QK, K-composed)
    imaginary     DOUBLE,   -- imaginary part
    writer_layer  INTEGER,  -- K-composed only: layer of the earlier head
    writer_head   INTEGER,  -- K-composed only: the earlier head, counted from 0 within its layer [head of writer_layer]
    PRIMARY KEY (model_id, layer, head, circuit, rank)
);

-- One row a term of the path expansion, last checkpoint: all paths of an order, or one path. A path runs from the
-- embedding through some heads, its order; patterns and the scales of norms are as in the true run.
CREATE TABLE path_terms (
    model_id              VARCHAR,    -- models.model_id
    term                  VARCHAR,    -- `order 1`, `L0H3`, `L0H3 > L1H2`, or `feed-forward`: all paths that start there [node]
    term_order            INTEGER,    -- heads on the path; NULL for feed-forward
    heads                 VARCHAR[],  -- heads on the path, first to last; NULL for all paths of an order [node]
    loss_nats             DOUBLE,     -- loss with this term and all of lower order, no others
    loss_effect_nats      DOUBLE,     -- by how much the term lowers the loss that lower orders leave; negative if it harms
    removal_effect_nats   DOUBLE,     -- by how much the true loss rises without this order; NULL for one path
    logit_share           DOUBLE,     -- share of the variance of logits, by covariance; shares of orders sum to 1
    linearised            BOOLEAN,    -- whether norms were held at their true scale; false where there are none
    PRIMARY KEY (model_id, term)
);

-- One row a head and pair of sources of its attention scores, first and last checkpoint, on validation text, BOS left
-- out. Sources are the writers of what is read: embedding, position, bias, a head (L0H3), a feed-forward layer (L0MLP);
-- distance is a bias of scores. Beyond max_sources for queries or keys, largest first, they are summed up as other heads
-- and other MLPs.
CREATE TABLE score_terms (
    model_id      VARCHAR,  -- models.model_id
    step          INTEGER,  -- training step of the checkpoint
    layer         INTEGER,  -- layer of the head that attends
    head          INTEGER,  -- counted from 0 within its layer [head of layer]
    query_source  VARCHAR,  -- writer of what the query reads [node]
    key_source    VARCHAR,  -- writer of what the key reads [node]
    composition   VARCHAR,  -- direct, Q, K or QK: which side reads earlier heads; else position or feed-forward
    covariance    DOUBLE,   -- of this part of the score with the whole, within queries, squared score
    share         DOUBLE,   -- covariance divided by the whole score's variance; sums to 1 over a head, parts may be negative
    PRIMARY KEY (model_id, step, layer, head, query_source, key_source)
);

-- One row a pair of an earlier and a later head, last checkpoint: the two in series, as one head. Beyond max_pairs, those
-- with the largest ov_norm first, the other columns are NULL.
CREATE TABLE virtual_heads (
    model_id                     VARCHAR,  -- models.model_id
    first_layer                  INTEGER,  -- layer of the earlier head
    first_head                   INTEGER,  -- the earlier head, counted from 0 within its layer [head of first_layer]
    second_layer                 INTEGER,  -- layer of the later head
    second_head                  INTEGER,  -- the later head, counted from 0 within its layer [head of second_layer]
    ov_norm                      DOUBLE,   -- Frobenius norm of OV1 OV2
    copying_eigenvalues          DOUBLE,   -- eigenvalues of W_E OV1 OV2 W_U: sum over sum of sizes, -1..1: 1 copies
    induction_random_period      DOUBLE,   -- of the product of patterns: heads.induction_random_period
    induction_random_period_sem  DOUBLE,   -- standard error of induction_random_period over sequences of repeats
    induction_copying_logit      DOUBLE,   -- what goes through both adds to the logit of what follows
    induction_copying_logit_sem  DOUBLE,   -- standard error of induction_copying_logit over sequences of repeats
    loss_effect_nats             DOUBLE,   -- by how much it lowers the loss that paths through at most one head leave
    logit_share                  DOUBLE,   -- share of the variance of logits, by covariance
    mean_distance                DOUBLE,   -- mean distance attended back by the product of patterns, BOS left out, positions
    confidence                   DOUBLE,   -- mean largest weight of a query in that product
    PRIMARY KEY (model_id, first_layer, first_head, second_layer, second_head)
);

-- One row a model, last checkpoint: how well its direct path W_E W_U fits the bigrams of the training text. Losses are on
-- text drawn from these bigrams, whose source token occurs at least 20 times.
CREATE TABLE bigrams (
    model_id                VARCHAR PRIMARY KEY,  -- models.model_id
    n_sources               INTEGER,              -- source tokens that count
    coverage                DOUBLE,               -- fraction of all bigrams that have such a source
    unigram_loss_nats       DOUBLE,               -- loss if a token's frequency is all that is known
    bigram_loss_nats        DOUBLE,               -- loss if the bigrams are known
    direct_loss_nats        DOUBLE,               -- loss of the direct path alone
    explained_share         DOUBLE,               -- (unigram - direct) / (unigram - bigram): 1 is all, negative is worse than none
    kl_nats                 DOUBLE,               -- direct minus bigram loss: KL divergence from the bigrams
    correlation             DOUBLE,               -- direct logits with log probabilities, each minus its source's mean
    n_gap_sources           INTEGER,              -- source tokens that also occur at least 20 times in the training sequences read
    gap_coverage            DOUBLE,               -- fraction of all bigrams that have such a source
    gap_coefficient         DOUBLE,               -- of the rest's mean logits beside log probabilities in the direct ones; below 0 for any two parts that fit bigrams together
    linearised              BOOLEAN               -- whether norms were held at their true scale; false where there are none
);

-- One row a frequent bigram of the training text and what a model says of it, last checkpoint. Logits and log
-- probabilities are less their mean over the bigrams of the source.
CREATE TABLE bigram_samples (
    model_id              VARCHAR,  -- models.model_id
    rank                  INTEGER,  -- counted from 0, most frequent first
    source                VARCHAR,  -- text of the first token
    target                VARCHAR,  -- text of the second
    n_pairs               BIGINT,   -- how often the bigram occurs
    log_probability_nats  DOUBLE,   -- log probability of the target after the source
    direct_logit          DOUBLE,   -- what the direct path adds to the target
    rest_logit            DOUBLE,   -- what the rest of the model adds on average; NULL if the source is too rare to know
    PRIMARY KEY (model_id, rank)
);

-- One row an earlier head, a later head and what the later one reads with, last checkpoint: the earlier one's output is
-- removed from that alone. Scores are the later head's.
CREATE TABLE causal_checks (
    model_id                         VARCHAR,  -- models.model_id
    writer_layer                     INTEGER,  -- layer of the earlier head
    writer_head                      INTEGER,  -- the earlier head, counted from 0 within its layer [head of writer_layer]
    reader_layer                     INTEGER,  -- layer of the later head
    reader_head                      INTEGER,  -- the later head, counted from 0 within its layer [head of reader_layer]
    kind                             VARCHAR,  -- Q, K or V: queries, keys or values of the later head
    prefix_matching                  DOUBLE,   -- of the intact model
    prefix_matching_without          DOUBLE,   -- without the earlier head's output
    induction_random_period          DOUBLE,   -- of the intact model
    induction_random_period_without  DOUBLE,   -- without the earlier head's output
    induction_copying_logit          DOUBLE,   -- of the intact model
    induction_copying_logit_without  DOUBLE,   -- without the earlier head's output
    pattern_change                   DOUBLE,   -- fraction of attention that moves, mean over queries of validation text
    loss_effect_nats                 DOUBLE,   -- by how much the loss on validation text rises
    PRIMARY KEY (model_id, writer_layer, writer_head, reader_layer, reader_head, kind)
);

-- One row a later head and a kind of induction circuit, last checkpoint: all of its writers removed together from what the
-- head reads. Of kind K they are earlier heads that give 0.3 or more of their attention to the token before; of kind Q
-- (pointers), to earlier copies of the current token; of kind V (carriers), any. Writers are those whose removal, or whose
-- return where all such heads are removed, changes the head's induction_random_period (kind V: its
-- induction_copying_logit) by a tenth or more, significantly over repeats.
CREATE TABLE joint_checks (
    model_id                         VARCHAR,    -- models.model_id
    reader_layer                     INTEGER,    -- layer of the later head
    reader_head                      INTEGER,    -- the later head, counted from 0 within its layer [head of reader_layer]
    kind                             VARCHAR,    -- K, Q or V: the keys, the queries or the values of the later head
    writers                          VARCHAR[],  -- heads removed, like L0H3, the largest effect first; empty if there are none [node]
    prefix_matching                  DOUBLE,     -- of the intact model; NULL if there are no writers
    prefix_matching_without          DOUBLE,     -- without the writers' outputs
    induction_random_period          DOUBLE,     -- of the intact model; NULL if there are no writers
    induction_random_period_without  DOUBLE,     -- without the writers' outputs
    induction_copying_logit          DOUBLE,     -- of the intact model; NULL if there are no writers
    induction_copying_logit_without  DOUBLE,     -- without the writers' outputs
    pattern_change                   DOUBLE,     -- fraction of attention that moves, mean over queries of validation text
    loss_effect_nats                 DOUBLE,     -- by how much the loss on validation text rises
    PRIMARY KEY (model_id, reader_layer, reader_head, kind)
);

-- One row an identity that must hold exactly in a model, last checkpoint: how far it is from holding. Sums of paths are in
-- float32, the rest in float64.
CREATE TABLE identities (
    model_id    VARCHAR,  -- models.model_id
    identity    VARCHAR,  -- the claim that it decides, like paths-sum
    difference  DOUBLE,   -- largest difference: of patterns as it is, of logits and outputs over their standard deviation
    PRIMARY KEY (model_id, identity)
);

-- One row a checkpoint of an imported model and what was checked before anything was measured on it.
CREATE TABLE certificates (
    model_id  VARCHAR,  -- models.model_id
    step      BIGINT,   -- training step of the checkpoint
    checked   VARCHAR,  -- finite, parity, round_trip, unknown_tokens, loss_nats, loss_bits_per_byte, continuation, or notes: what must be known of how it was read
    value     DOUBLE,   -- what was found, in the unit that detail says; NULL for a text, or if it couldn't be checked
    bar       DOUBLE,   -- what the value must not exceed; NULL if it decides nothing
    passed    BOOLEAN,  -- whether it doesn't; NULL if that decides nothing: a model that fails is not measured
    detail    VARCHAR,  -- what the value is of, or the text
    PRIMARY KEY (model_id, step, checked)
);

-- One row a head, what is ablated, how and in which scope, last checkpoint. Effects are rises of the loss on validation
-- text, paired by sequence; their intervals are over documents. resample takes z from other sequences
-- of that text, mean over 5 of them, which a single sequence doesn't have.
CREATE TABLE ablations (
    model_id          VARCHAR,  -- models.model_id
    layer             INTEGER,  -- counted from 0
    head              INTEGER,  -- counted from 0 within its layer [head of layer]
    ablated           VARCHAR,  -- head: this head; others: all heads of its layer but this one
    method            VARCHAR,  -- what takes its place: zero, mean, position_mean (a mean for each position) or resample
    scope             VARCHAR,  -- full: later layers see it; frozen_patterns: their attention patterns stay as they were
    loss_effect_nats  DOUBLE,   -- loss when ablated minus loss of the intact model, nats per token; NULL if there is none
    ci_low_nats       DOUBLE,   -- lower end of its 95 % interval, nats; NULL for less than two documents
    ci_high_nats      DOUBLE,   -- upper end of its 95 % interval, nats
    kl_nats           DOUBLE,   -- KL divergence of the ablated model's predictions from the intact one's, nats per token
    n_sequences       INTEGER,  -- sequences measured on
    PRIMARY KEY (model_id, layer, head, ablated, method, scope)
);

-- One row a layer, a part of its feed-forward neurons and what takes the place of their activations, last checkpoint.
-- Effects are as in ablations; later layers see them.
CREATE TABLE feed_forward_ablations (
    model_id          VARCHAR,  -- models.model_id
    layer             INTEGER,  -- counted from 0
    part              VARCHAR,  -- which neurons: all, or a group like `group 3`, counted from 0
    method            VARCHAR,  -- what takes the place of their activations: zero, or mean (over other text)
    first_neuron      INTEGER,  -- the part's first neuron, counted from 0 within its layer
    n_neurons         INTEGER,  -- the part's neurons, which follow each other
    loss_effect_nats  DOUBLE,   -- loss when ablated minus loss of the intact model, nats per token
    ci_low_nats       DOUBLE,   -- lower end of its 95 % interval, nats; NULL for less than two documents
    ci_high_nats      DOUBLE,   -- upper end of its 95 % interval, nats
    kl_nats           DOUBLE,   -- KL divergence of the ablated model's predictions from the intact one's, nats per token
    share_of_loss     DOUBLE,   -- loss_effect_nats over the effect of all feed-forward layers; NULL unless that is > 0
    n_sequences       INTEGER,  -- sequences measured on
    PRIMARY KEY (model_id, layer, part, method)
);

-- One row a head and method of scoring how much it matters, last checkpoint. data/README.md says what the methods are.
CREATE TABLE importance (
    model_id    VARCHAR,  -- models.model_id
    layer       INTEGER,  -- counted from 0
    head        INTEGER,  -- counted from 0 within its layer [head of layer]
    method      VARCHAR,  -- like michel_paper, weight_norm or ablation_mean
    score       DOUBLE,   -- in the method's own unit; NULL where the method is not defined
    normalised  DOUBLE,   -- score over the root of the sum of its layer's squared scores
    rank        INTEGER,  -- by score within the model, counted from 0, highest first, equal scores by layer and head
    PRIMARY KEY (model_id, layer, head, method)
);

-- One row a penalty on open gates and a head: hard-concrete gates trained on the converged model.
CREATE TABLE gates (
    model_id          VARCHAR,  -- models.model_id
    penalty_nats      DOUBLE,   -- lambda: nats added to the loss for each head that is expected open
    layer             INTEGER,  -- counted from 0
    head              INTEGER,  -- counted from 0 within its layer [head of layer]
    log_alpha         DOUBLE,   -- the gate's parameter
    open_probability  DOUBLE,   -- chance that the gate is not 0 while it is sampled
    gate              DOUBLE,   -- the gate's value without noise, 0..1: the head's output is multiplied by it
    PRIMARY KEY (model_id, penalty_nats, layer, head)
);

-- One row a penalty on open gates: what the model is with these gates.
CREATE TABLE gate_sweeps (
    model_id             VARCHAR,  -- models.model_id
    penalty_nats         DOUBLE,   -- lambda: nats added to the loss for each head that is expected open
    n_open               INTEGER,  -- gates that are not 0 without noise
    expected_open        DOUBLE,   -- sum of open probabilities
    intact_loss_nats     DOUBLE,   -- validation loss without gates
    gated_loss_nats      DOUBLE,   -- validation loss with gates as they are without noise
    folded_loss_nats     DOUBLE,   -- validation loss after gates are folded into W_O and closed heads removed
    binarised_loss_nats  DOUBLE,   -- validation loss with every gate that is not 0 set to 1
    PRIMARY KEY (model_id, penalty_nats)
);

-- One row an order and procedure of pruning and a number of heads pruned, from none to all. Of more than max_points heads
-- several go at once: from one number to the next, fewest where few have gone.
CREATE TABLE pruning (
    model_id           VARCHAR,  -- models.model_id
    procedure          VARCHAR,  -- one_shot, iterative (scored anew as heads go), iterative_retrain, gates or random
    order_method       VARCHAR,  -- importance.method that the order is by, or random
    draw               INTEGER,  -- which random order, counted from 0; 0 for all others
    n_pruned           INTEGER,  -- heads pruned, of those that training left
    layer              INTEGER,  -- of the head pruned last; NULL at n_pruned 0, where several went at once, and for gates, which close together
    head               INTEGER,  -- the head pruned last, counted from 0 within its layer [head of layer]
    fraction_pruned    DOUBLE,   -- n_pruned over the heads that training left
    loss_nats          DOUBLE,   -- validation loss, pruned heads replaced by their mean output, all others whole
    loss_effect_nats   DOUBLE,   -- rise of validation loss over the intact model's
    ci_low_nats        DOUBLE,   -- lower end of its 95 % interval over documents, nats; NULL for less than two documents
    ci_high_nats       DOUBLE,   -- upper end of its 95 % interval, nats
    relative_increase  DOUBLE,   -- loss_effect_nats divided by the intact model's loss
    parameters         BIGINT,   -- of the model with the pruned heads physically removed
    PRIMARY KEY (model_id, procedure, order_method, draw, n_pruned)
);

-- One row a model with heads physically removed, kept as a checkpoint of its own.
CREATE TABLE pruned_models (
    model_id                 VARCHAR,    -- models.model_id of the model that was pruned
    procedure                VARCHAR,    -- pruning.procedure; training: heads were removed while the model trained (prune_to, or gates that closed)
    order_method             VARCHAR,    -- pruning.order_method; gradient or gate for training
    n_pruned                 INTEGER,    -- heads removed
    chosen_as                VARCHAR,    -- within 1 %, within 5 %: most heads at less additional loss; half: of all heads; trained: all that were removed
    heads_per_layer          INTEGER[],  -- heads left in each layer; layers that vanished are left out
    parameters               BIGINT,     -- numbers in the model
    intact_parameters        BIGINT,     -- as the column before, of the intact model
    checkpoint_bytes         BIGINT,     -- size of the weights' file
    intact_checkpoint_bytes  BIGINT,     -- as the column before, of the intact model
    logit_difference         DOUBLE,     -- largest, of logits from the masked model's, over their sd; NULL if trained on since
    loss_nats                DOUBLE,     -- validation loss
    intact_loss_nats         DOUBLE,     -- as the column before, of the intact model
    seconds_batch_1          DOUBLE,     -- of a forward pass of one sequence, median
    intact_seconds_batch_1   DOUBLE,     -- as the column before, of the intact model, timed in turns
    seconds_batch_32         DOUBLE,     -- of a forward pass of 32 sequences, median
    intact_seconds_batch_32  DOUBLE,     -- as the column before, of the intact model, timed in turns
    checkpoint               VARCHAR,    -- folder of the checkpoint within the artifact
    PRIMARY KEY (model_id, procedure, order_method, n_pruned, chosen_as)
);

-- One row a pair of heads, last checkpoint, first before second: how alike they are, and whether each stands in for the other. A pair
-- is redundant if losing either costs under 1 % of the loss; losing both costs something, and exceeds the sum by 0.5 % of the loss or
-- more; and each is needed once the other is lost: significantly, at 5 % over all pairs tried (Holm). Heads in series aren't redundant.
-- Standard errors are over documents.
CREATE TABLE head_similarity (
    model_id                 VARCHAR,  -- models.model_id
    first_layer              INTEGER,  -- layer of the first head
    first_head               INTEGER,  -- counted from 0 within its layer [head of first_layer]
    second_layer             INTEGER,  -- layer of the second head
    second_head              INTEGER,  -- counted from 0 within its layer [head of second_layer]
    jensen_shannon_distance  DOUBLE,   -- of their attention, 0 (same)..1, mean over queries; root of the divergence in bits
    initial_distance         DOUBLE,   -- jensen_shannon_distance at the initialisation
    output_cka               DOUBLE,   -- linear CKA of what they write, 0..1 (equal up to rotation and scale)
    ov_cosine                DOUBLE,   -- cosine of their OV matrices, -1..1; NULL under norms after each sublayer
    first_effect_nats        DOUBLE,   -- rise of the loss without the first head, mean-ablated
    second_effect_nats       DOUBLE,   -- rise of the loss without the second head
    both_effect_nats         DOUBLE,   -- rise of the loss without both heads; NULL if not tried
    excess_nats              DOUBLE,   -- both_effect_nats minus first_effect_nats minus second_effect_nats
    excess_sem_nats          DOUBLE,   -- standard error of excess_nats over documents; NULL on too few
    excess_chance            DOUBLE,   -- how often chance gives as much if the excess is 0.5 % of the loss; adjusted (Holm)
    is_redundant             BOOLEAN,  -- whether each stands in for the other; NULL if not tried, or without a standard error
    initial_excess_nats      DOUBLE,   -- excess_nats at the initialisation
    initial_is_redundant     BOOLEAN,  -- is_redundant at the initialisation
    PRIMARY KEY (model_id, first_layer, first_head, second_layer, second_head)
);

-- One row a head and a query: where the head looks, last checkpoint. Models of one text and n_ctx have the same queries.
CREATE TABLE head_patterns (
    model_id  VARCHAR,  -- models.model_id
    layer     INTEGER,  -- counted from 0
    head      INTEGER,  -- counted from 0 within its layer [head of layer]
    sequence  INTEGER,  -- which of the sequences that heads are compared on, counted from 0
    query     INTEGER,  -- position that attends, counted from 0 (BOS)
    weights   FLOAT[],  -- attention on each key, from BOS to the query itself
    PRIMARY KEY (model_id, layer, head, sequence, query)
);

-- One row a head and another model that differs from its own in the seed alone: the head there that it is matched with,
-- so that the mean distance over all heads is least, each matched once. Distances are those of jensen_shannon_distance, over
-- the queries of head_patterns.
CREATE TABLE head_matches (
    model_id          VARCHAR,  -- models.model_id
    layer             INTEGER,  -- counted from 0
    head              INTEGER,  -- counted from 0 within its layer [head of layer]
    other_model_id    VARCHAR,  -- models.model_id of the model with another seed
    other_layer       INTEGER,  -- layer of the matched head
    other_head        INTEGER,  -- the matched head, counted from 0 within its layer [head of other_layer in other_model_id]
    matched_distance  DOUBLE,   -- from the head to the one that it is matched with
    nearest_distance  DOUBLE,   -- from the head to the nearest other one of its own layer; NULL if there is none
    PRIMARY KEY (model_id, layer, head, other_model_id)
);

-- One row a head: its place among the others by the distance of attention patterns.
CREATE TABLE head_clusters (
    model_id   VARCHAR,  -- models.model_id
    layer      INTEGER,  -- counted from 0
    head       INTEGER,  -- counted from 0 within its layer [head of layer]
    cluster    INTEGER,  -- heads with one number attend alike; counted from 0
    leaf       INTEGER,  -- place in the order that puts similar heads next to each other, counted from 0
    PRIMARY KEY (model_id, layer, head)
);

-- One row a way to sum up attention over heads and layers, and a weight of it, on the passage of attention_samples (if
-- that has its default length).
CREATE TABLE attention_aggregates (
    model_id     VARCHAR,  -- models.model_id
    method       VARCHAR,  -- mean: over the layer's heads, if any; rollout, flow: from this layer back to the tokens
    layer        INTEGER,  -- counted from 0
    query        INTEGER,  -- position that attends, counted from 0 (BOS)
    key          INTEGER,  -- position attended to, counted from 0 (BOS)
    query_token  VARCHAR,  -- text of the token at query
    key_token    VARCHAR,  -- text of the token at key
    weight       DOUBLE,   -- a query's weights sum to 1
    PRIMARY KEY (model_id, method, layer, query, key)
);

-- One row a place in the model, and a task: how well a linear probe tells labels from what is there, last checkpoint.
-- Standard errors and intervals are over documents of the test text, which all models share, and draws of control labels.
CREATE TABLE probes (
    model_id           VARCHAR,  -- models.model_id
    site               VARCHAR,  -- a head (L0H3), the stream before a layer (R0) or at the end (the highest R) [node]
    task               VARCHAR,  -- probe_tasks.task
    layer              INTEGER,  -- of the head, or that reads the stream; n_layers at the end
    head               INTEGER,  -- counted from 0 within its layer; NULL for the stream [head of layer]
    accuracy           DOUBLE,   -- fraction of test tokens labelled right
    majority_accuracy  DOUBLE,   -- accuracy of always answering the commonest training label
    type_accuracy      DOUBLE,   -- accuracy of answering the commonest training label of the token itself
    control_accuracy   DOUBLE,   -- accuracy if labels are random, one for each token type; mean over draws
    control_sem        DOUBLE,   -- standard error of control_accuracy over draws
    selectivity        DOUBLE,   -- accuracy minus control_accuracy
    selectivity_sem    DOUBLE,   -- standard error of selectivity
    gain               DOUBLE,   -- accuracy minus the highest of majority_accuracy, type_accuracy and control_accuracy
    gain_sem           DOUBLE,   -- standard error of gain
    gain_low           DOUBLE,   -- lower end of its 95 % interval; above a value only if all three differences are
    gain_high          DOUBLE,   -- upper end of its 95 % interval
    selection_gain     DOUBLE,   -- gain on other documents than those of test text, by which the best place is chosen
    converged          BOOLEAN,  -- whether all fits reached their optimum within the steps allowed
    PRIMARY KEY (model_id, site, task)
);

-- One row a task of probes: how many labels it has, or why none. data/README.md says what the tasks are.
CREATE TABLE probe_tasks (
    model_id          VARCHAR,  -- models.model_id
    task              VARCHAR,  -- like lexical_class or bracket_depth
    n_classes         INTEGER,  -- labels that occur
    n_train           INTEGER,  -- tokens trained on
    n_selection       INTEGER,  -- tokens on which the best head is chosen, of other documents
    n_test            INTEGER,  -- tokens tested on, of yet other documents
    n_test_documents  INTEGER,  -- documents that those are of
    why_absent        VARCHAR,  -- why this text doesn't offer the task, which then has no other values; NULL if it does
    PRIMARY KEY (model_id, task)
);

-- One row a study, a series of untrained models in which one size varies, one of its models and a pass: what the pass of
-- one sequence costs on one CPU thread.
CREATE TABLE costs (
    study             VARCHAR,  -- studies.study
    axis              VARCHAR,  -- what varies in the series: n_ctx, d_model or n_heads
    config_id         VARCHAR,  -- the model in words, like `full n_ctx=512 d_model=16 n_heads=1`
    pass              VARCHAR,  -- forward, or forward_backward
    attention         VARCHAR,  -- full or local
    attention_window  INTEGER,  -- keys that a query of local attention sees; NULL for full
    n_ctx             INTEGER,  -- positions of the sequence
    d_model           INTEGER,  -- width of the residual stream
    n_heads           INTEGER,  -- heads; d_head is d_model / n_heads
    seconds           DOUBLE,   -- processor time, median of repeats
    seconds_by_round  DOUBLE[], -- processor time of each repeat: in a round, every pass of the study was timed once
    flops_counted     BIGINT,   -- floating-point operations of the matrix products, counted while they ran
    flops_formula     BIGINT,   -- flops_counted by the formula in models/flops.py
    bytes             BIGINT,   -- most bytes that tensors held at once, weights and gradients included
    PRIMARY KEY (study, axis, config_id, pass)
);

-- One row a study and claim of reports/claims: what the study says of it.
CREATE TABLE claims (
    study             VARCHAR,  -- studies.study
    claim_id          VARCHAR,  -- name of the claim's file in reports/claims
    kind              VARCHAR,  -- finding, description (a number without a bar) or self-check (fails only if the code is wrong)
    verdict           VARCHAR,  -- of a finding: holds, holds, as for random weights, fails, depends (on the configuration) or undecided; described; of a self-check: passes or fails; not tested
    estimate          DOUBLE,   -- of its one configuration, less its control if it has one; of a rule for every model, the largest; of a description, the median over configurations; else NULL
    ci_low            DOUBLE,   -- lower end of the estimate's 95 % interval; NULL unless a finding has one configuration
    ci_high           DOUBLE,   -- upper end of that interval
    estimate_low      DOUBLE,   -- smallest estimate of a configuration
    estimate_high     DOUBLE,   -- largest estimate of a configuration
    control           DOUBLE,   -- the same measure of random weights, median over configurations; NULL if the claim has none
    n                 INTEGER,  -- seeds of the configuration that has fewest; of a rule for every model, values
    look              INTEGER,  -- where seeds are added until it is decided: the seeds at which it was, the most of any configuration, or those of the last look; else NULL
    over              VARCHAR,  -- what n counts: seeds, models or configurations
    n_configurations  INTEGER,  -- configurations: models that differ in their seed alone; NULL of a rule for every model
    unit              VARCHAR,  -- unit of the estimate; NULL if it has none
    rule              VARCHAR,  -- what the estimate must be; NULL of a description
    statement         VARCHAR,  -- what is claimed
    source            VARCHAR,  -- who claims it: authors, title and section
    source_url        VARCHAR,  -- link to the source; NULL if it is not published
    texts             VARCHAR,  -- titles of the texts through which the claim came; NULL if it came from the source itself
    evidence          VARCHAR,  -- heading of the report's section that shows more; NULL if there is none
    chance            DOUBLE,   -- p-value of the verdict of a finding, two-sided, over its configurations; NULL unless it is decided
    survives          BOOLEAN,  -- whether the verdict is among those of its study with a false-discovery rate of 5 %; NULL unless it is decided
    reason            VARCHAR,  -- what it depends on, why it is undecided or not tested, and which models are undertrained
    changed           VARCHAR,  -- when and why its rule changed; NULL if it never did
    PRIMARY KEY (study, claim_id)
);

-- One row a study, a finding or description, and a configuration: what its seeds decide.
CREATE TABLE claim_configurations (
    study           VARCHAR,   -- studies.study
    claim_id        VARCHAR,   -- claims.claim_id
    configuration   VARCHAR,   -- what tells it from the study's others, like `2 heads a layer`
    place           VARCHAR,   -- the settings that its models share, like `n_layers=2`
    n               INTEGER,   -- seeds that count
    n_undertrained  INTEGER,   -- seeds that don't, since their models learned too little
    look            INTEGER,   -- where seeds are added until it is decided: the seeds at which it was, or those of the last look; else NULL
    points          DOUBLE[],  -- the value of each seed that counts
    estimate        DOUBLE,    -- what the seeds come to, less the control if a verdict came of it
    ci_low          DOUBLE,    -- lower end of its 95 % interval, or of one of a look's own part of the error; NULL of a description, or of too few seeds
    ci_high         DOUBLE,    -- upper end of that interval
    control         DOUBLE,    -- mean of the same measure of random weights; NULL if the claim has none
    verdict         VARCHAR,   -- holds, holds, as for random weights, fails, undecided, described or not tested
    chance          DOUBLE,    -- p-value of that verdict, two-sided; NULL unless it is decided
    kinds           VARCHAR[], -- where seeds are added until it is decided: places of the kinds of model of which more may decide it
    reason          VARCHAR,   -- why it is undecided or not tested
    PRIMARY KEY (study, claim_id, configuration)
);

-- One row a pair of prompts that a model was tried on, last checkpoint: what it reads, and whether it was measured.
CREATE TABLE prompts (
    model_id      VARCHAR,    -- models.model_id
    prompts       VARCHAR,    -- the prompt set
    pair          INTEGER,    -- number of the pair in the set
    template      VARCHAR,    -- pairs of one template are alike
    prompt        VARCHAR,    -- the clean prompt; of the set repeats, its tokens' labels
    corrupt       VARCHAR,    -- the prompt that differs in what the behaviour depends on
    answers       VARCHAR[],  -- texts that would be right to go on with
    wrong         VARCHAR[],  -- texts that would be wrong
    why_dropped   VARCHAR,    -- why it is not measured: how the tokenizer reads it; NULL if it is
    n_tokens      INTEGER,    -- tokens of each prompt, the first ones that all answers share included; NULL if it is dropped
    clean_nats    DOUBLE,     -- log-odds of the answers against the wrong ones at the clean prompt
    corrupt_nats  DOUBLE,     -- the same at the corrupt prompt
    PRIMARY KEY (model_id, prompts, pair)
);

-- One row a model, prompt set and checkpoint: whether the model can do what the set asks. Intervals are over templates if there are
-- four or more, else over pairs (CR2).
CREATE TABLE prompt_scores (
    model_id              VARCHAR,  -- models.model_id
    prompts               VARCHAR,  -- the prompt set
    step                  INTEGER,  -- training step
    n_pairs               INTEGER,  -- pairs that are measured
    accuracy              DOUBLE,   -- fraction of pairs whose log-odds at the clean prompt are above 0
    accuracy_low          DOUBLE,   -- lower end of its 95 % interval; NULL if all pairs are right, or all wrong
    accuracy_high         DOUBLE,   -- upper end
    clean_nats            DOUBLE,   -- mean log-odds of the answers at the clean prompt
    clean_low_nats        DOUBLE,   -- lower end of its 95 % interval
    clean_high_nats       DOUBLE,   -- upper end
    corrupt_nats          DOUBLE,   -- mean log-odds at the corrupt prompt
    corrupt_low_nats      DOUBLE,   -- lower end of its 95 % interval
    corrupt_high_nats     DOUBLE,   -- upper end
    difference_nats       DOUBLE,   -- clean_nats minus corrupt_nats: the whole difference, of which effects are shares
    difference_low_nats   DOUBLE,   -- lower end of its 95 % interval
    difference_high_nats  DOUBLE,   -- upper end
    can_do_it             BOOLEAN,  -- the intervals of the difference and of accuracy are above 0 and 0.5; NULL if not measured
    why_refused           VARCHAR,  -- why the set is not measured; NULL if it is
    PRIMARY KEY (model_id, prompts, step)
);

-- One row a head or feed-forward layer, last checkpoint, of a prompt set that the model can do: its exact effect on the log-odds.
CREATE TABLE node_effects (
    model_id           VARCHAR,  -- models.model_id
    prompts            VARCHAR,  -- the prompt set
    node               VARCHAR,  -- the head or feed-forward layer [node]
    effect_nats        DOUBLE,   -- fall of the log-odds if it writes what it writes at the corrupt prompt (noising)
    effect_sem_nats    DOUBLE,   -- standard error
    share              DOUBLE,   -- effect_nats over the whole difference
    restored_nats      DOUBLE,   -- rise of the log-odds at the corrupt prompt if it writes what it writes at the clean one (denoising)
    restored_sem_nats  DOUBLE,   -- standard error
    restored_share     DOUBLE,   -- restored_nats over the whole difference
    looks_from         VARCHAR,  -- where a head's output counts most to first order, pair by pair: the commonest place
    looks_at           VARCHAR,  -- what it attends to most from there, at the clean prompt
    looks_share        DOUBLE,   -- fraction of pairs in which it looks from there at that
    looks_attention    DOUBLE,   -- mean attention that this gets in these pairs
    direct_nats        DOUBLE,   -- what a head adds to the log-odds past all later layers, the last norm's scale frozen; NULL if outputs are normalised
    direct_sem_nats    DOUBLE,   -- standard error
    PRIMARY KEY (model_id, prompts, node)
);

-- One row an edge, last checkpoint, of a prompt set that the model can do: those in the circuit, and those patched one by one.
CREATE TABLE prompt_edges (
    model_id        VARCHAR,  -- models.model_id
    prompts         VARCHAR,  -- the prompt set
    writer          VARCHAR,  -- who writes: the embedding, a head or a feed-forward layer [node]
    reader          VARCHAR,  -- who reads; L0G1 are the keys or values that a group of heads shares [node]
    port            VARCHAR,  -- Q, K or V of a head; in for other readers
    score_nats      DOUBLE,   -- its effect on the log-odds to first order (EAP-IG), mean over pairs
    score_sem_nats  DOUBLE,   -- standard error
    in_circuit      BOOLEAN,  -- it is in the smallest circuit found that makes 0.9 of the whole difference
    resampled       DOUBLE,   -- fraction of resamples of pairs in which it is among as many edges with the largest scores
    exact_nats      DOUBLE,   -- fall of the log-odds if it alone carries what it carries at the corrupt prompt; NULL if not patched
    exact_sem_nats  DOUBLE,   -- standard error
    share           DOUBLE,   -- exact_nats over the whole difference
    share_low       DOUBLE,   -- lower end of its 95 % interval
    share_high      DOUBLE,   -- upper end
    surely_in       BOOLEAN,  -- its share is above 1 %, tested together with all that were patched (Holm at 5 %)
    PRIMARY KEY (model_id, prompts, writer, reader, port)
);

-- One row a circuit that was run, last checkpoint, of a prompt set that the model can do: how much of the whole difference it makes.
CREATE TABLE circuit_curves (
    model_id      VARCHAR,  -- models.model_id
    prompts       VARCHAR,  -- the prompt set
    edges_by      VARCHAR,  -- which edges: those with the largest scores, absolute or signed; swapped, found with right and wrong answers exchanged in half of the pairs; random
    pairs         VARCHAR,  -- found: the pairs from which the edges were found; judged: the other half
    fraction      DOUBLE,   -- of all edges
    draw          INTEGER,  -- number of the random circuit; 0 of others
    n_edges       INTEGER,  -- edges asked for
    n_connected   INTEGER,  -- of these, edges on a path from the embedding to the logits
    faithfulness  DOUBLE,   -- share of the whole difference that the circuit makes; 1 is the model's own, above it beats the model
    completeness  DOUBLE,   -- share that is left without the circuit; NULL of circuits for which it wasn't measured
    kl_nats       DOUBLE,   -- KL divergence of its predictions from the model's
    accuracy      DOUBLE,   -- fraction of pairs that it gets right
    PRIMARY KEY (model_id, prompts, edges_by, pairs, fraction, draw)
);

-- One row a model and prompt set that it can do, last checkpoint: its circuit in numbers, those of the judged half if nothing else is said.
CREATE TABLE prompt_circuits (
    model_id             VARCHAR,  -- models.model_id
    prompts              VARCHAR,  -- the prompt set
    n_edges              INTEGER,  -- edges of the model
    n_edges_enough       INTEGER,  -- edges of the smallest circuit found that makes 0.9 of the whole difference where it was found
    n_connected_enough   INTEGER,  -- of these, edges on a path from the embedding to the logits
    faithfulness_enough  DOUBLE,   -- share of the whole difference that this circuit makes
    kl_enough_nats       DOUBLE,   -- KL divergence of its predictions from the model's
    accuracy_enough      DOUBLE,   -- fraction of pairs that it gets right
    cmd_absolute         DOUBLE,   -- CMD: area between faithfulness and 1 over fractions of edges, the largest absolute scores first
    cmd_where_found      DOUBLE,   -- the same on the pairs from which the edges were found
    cmd_signed           DOUBLE,   -- CMD with the largest scores first
    cmd_swapped          DOUBLE,   -- CMD of edges found with right and wrong answers exchanged in half of the pairs
    cmd_random           DOUBLE,   -- CMD of random circuits
    cpr_absolute         DOUBLE,   -- CPR: area under faithfulness, the largest absolute scores first
    cpr_signed           DOUBLE,   -- CPR with the largest scores first; above 1 where circuits beat the model
    cpr_swapped          DOUBLE,   -- CPR of edges found with answers exchanged
    cpr_random           DOUBLE,   -- CPR of random circuits
    n_surely_in          INTEGER,  -- edges that are surely in
    n_patched            INTEGER,  -- edges that were patched one by one
    n_drawn              INTEGER,  -- of these, edges drawn at random, on which scores are compared with exact effects
    scores_pearson       DOUBLE,   -- correlation of scores with exact effects over edges drawn at random
    scores_spearman      DOUBLE,   -- rank correlation of the two
    scores_right_signs   DOUBLE,   -- fraction of edges of which both have the same sign
    scores_slope         DOUBLE,   -- slope of scores over exact effects, through 0
    mean_jaccard         DOUBLE,   -- of circuits of this size found from resampled pairs: edges that two share over those that either has
    seconds              DOUBLE,   -- that the circuit took
    PRIMARY KEY (model_id, prompts)
);

-- One row a checkpoint, of a prompt set that the model can do at the last one: what the circuit of the last checkpoint does there, on
-- the judged half of the pairs.
CREATE TABLE circuit_checkpoints (
    model_id          VARCHAR,  -- models.model_id
    prompts           VARCHAR,  -- the prompt set
    step              INTEGER,  -- training step
    difference_nats   DOUBLE,   -- log-odds at the clean prompt minus those at the corrupt one, mean over pairs
    circuit_nats      DOUBLE,   -- how much of it the circuit makes: its log-odds minus those at the corrupt prompt
    circuit_low_nats  DOUBLE,   -- lower end of its 95 % interval
    circuit_high_nats DOUBLE,   -- upper end
    PRIMARY KEY (model_id, prompts, step)
);

-- One row a checkpoint and edge: of the edges that are in the last checkpoint's circuit, or surely in, the 50 with the largest scores.
CREATE TABLE edge_checkpoints (
    model_id    VARCHAR,  -- models.model_id
    prompts     VARCHAR,  -- the prompt set
    step        INTEGER,  -- training step
    writer      VARCHAR,  -- who writes: the embedding, a head or a feed-forward layer [node]
    reader      VARCHAR,  -- who reads [node]
    port        VARCHAR,  -- Q, K or V of a head; in for other readers
    score_nats  DOUBLE,   -- its effect on the log-odds to first order (EAP-IG), mean over the pairs on which edges are patched
    PRIMARY KEY (model_id, prompts, step, writer, reader, port)
);

-- One row an artifact that the warehouse was built from.
CREATE TABLE artifacts (
    stage    VARCHAR,    -- stage that made the artifact
    key      VARCHAR,    -- hash of everything that decided the artifact's content
    digest   VARCHAR,    -- hash of the artifact's content
    subject  VARCHAR,    -- what the artifact is about: a model_id, a corpus_id or a study
    created  TIMESTAMP,  -- when the artifact was committed, UTC
    seconds  DOUBLE,     -- wall time that it took to make
    bytes    BIGINT,     -- size of the artifact's files
    PRIMARY KEY (stage, key)
);

-- One row: what this file is an index of.
CREATE TABLE warehouse (
    fingerprint  VARCHAR PRIMARY KEY,  -- hash of the artifacts, and of what the next column is a hash of
    code         VARCHAR               -- hash of the schema, the views, the claims and the code that built the file
);
