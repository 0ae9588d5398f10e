-- By how much what must hold exactly doesn't, at most over the study's models.
SELECT
    CASE identity
        WHEN 'paths-sum' THEN 'logits are the sum of all paths'
        WHEN 'terms-add' THEN 'one layer: logits are the direct path and a term for each head, added up'
        WHEN 'pattern-bilinear' THEN 'layer 0: patterns are the softmax of a bilinear form in tokens and a bias of distance'
        WHEN 'source-decides' THEN 'layer 0: what a head does to the logits depends on its pattern and the source tokens'
        WHEN 'heads-independent' THEN 'heads write the same together as each on its own'
        WHEN 'one-head-is-attention' THEN 'each head is scaled dot-product attention'
        ELSE identity
    END AS what_must_hold,
    identity,
    count(*) AS models,
    max(difference) AS largest_difference,
    arg_max(label, difference) AS in_model
FROM labelled_models
JOIN identities USING (model_id)
WHERE study = $study
GROUP BY identity
ORDER BY list_position(['paths-sum', 'terms-add', 'pattern-bilinear', 'source-decides'], identity) NULLS LAST, identity
