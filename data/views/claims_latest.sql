-- What is known of each claim? One row a claim: the study whose models trained longest speaks; of several, the one with
-- most seeds, then the newest. A study of fewer than three seeds, which decide nothing, speaks only if no other tested the
-- claim, and one that didn't test it only if none did.
--
-- claims.*
-- study: the study that speaks
-- tokens: tokens that half of its models or more were trained on
-- n_seeds: seeds in its grid
-- finished_at: when that study ended, UTC
-- disagrees: other studies with another verdict, like `heads: fails`; undecided ones too, if they had three seeds; NULL if none
WITH lengths AS (
    SELECT study, median(tokens)::BIGINT AS tokens, count(DISTINCT seed) AS n_seeds
    FROM study_models
    JOIN models USING (model_id)
    GROUP BY study
),
ranked AS (
    SELECT
        claims.*,
        tokens,
        n_seeds,
        finished_at,
        verdict <> 'not tested' AND (verdict <> 'undecided' OR coalesce(n_seeds, 0) >= 3) AS speaks,
        row_number() OVER (
            PARTITION BY claim_id
            ORDER BY
                verdict = 'not tested',
                coalesce(n_seeds, 0) < 3 AND kind <> 'self-check',
                tokens DESC NULLS LAST,
                n_seeds DESC NULLS LAST,
                finished_at DESC NULLS LAST,
                study
        ) AS place
    FROM claims
    LEFT JOIN lengths USING (study)
    LEFT JOIN studies USING (study)
),
others AS (
    SELECT
        ranked.claim_id,
        string_agg(ranked.study || ': ' || ranked.verdict, '; ' ORDER BY ranked.place) AS disagrees
    FROM ranked
    JOIN ranked AS first ON first.claim_id = ranked.claim_id AND first.place = 1
    WHERE ranked.speaks AND ranked.verdict <> first.verdict
    GROUP BY ranked.claim_id
)
SELECT
    claim_id,
    kind,
    statement,
    source,
    source_url,
    verdict,
    estimate,
    ci_low,
    ci_high,
    estimate_low,
    estimate_high,
    control,
    n,
    over,
    n_configurations,
    unit,
    rule,
    reason,
    study,
    tokens,
    n_seeds,
    finished_at,
    disagrees
FROM ranked
LEFT JOIN others USING (claim_id)
WHERE place = 1
ORDER BY claim_id
