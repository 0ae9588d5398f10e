-- How exactly the identities of transformers hold, at worst over the study's models.
SELECT
    CASE identity
        WHEN 'paths-sum' THEN 'the logits are the sum of all paths'
        WHEN 'terms-add' THEN 'one layer: the logits are the direct path and a term for each head, added up'
        WHEN 'pattern-bilinear' THEN 'layer 0: patterns are the softmax of a bilinear form in tokens and a bias of distance'
        WHEN 'source-decides' THEN 'layer 0: what a head adds to the logits depends on its pattern and the source tokens alone'
        WHEN 'heads-independent' THEN 'heads write the same together as each on its own'
        WHEN 'one-head-is-attention' THEN 'each head is scaled dot-product attention'
        ELSE identity
    END AS identity,
    count(*) AS models,
    CASE
        WHEN max(difference) = 0 THEN 'exactly'
        ELSE replace(format('{:.0e}', max(difference)), 'e-0', 'e-')
    END AS holds_within,
    arg_max(label, difference) AS worst_model
FROM labelled_models
JOIN identities USING (model_id)
WHERE study = $study
GROUP BY identities.identity
ORDER BY max(difference) DESC, identities.identity
