-- statement: head outputs encode syntax: one head tells lexical class, and one bracket depth, better than the commonest
--   label, the token itself and control labels do
-- source: clark-2019, 4 Probing Individual Attention Heads
-- texts: parallel-heads
-- needs: total_heads > 0 AND measures($study, 'probes')
-- lacks: models with heads, or the stage probes
-- rule: holds if estimate > 0.02
-- range: -1 to 1
-- unit: gain in accuracy, the lower of the two
-- evidence: Probes
-- empty: heads were not probed for lexical class and bracket depth: only Python text has them
-- changed: 2026-11-28, probes that always give the commonest answer met the bar; now gain over every baseline,
--   with the error over the text that all seeds share
SELECT
    model_id,
    min(head_gain) AS value,
    arg_min(head_gain_low, head_gain) AS low,
    arg_min(head_gain_high, head_gain) AS high
FROM cells
JOIN probe_summary USING (model_id)
WHERE study = $study AND task IN ('lexical_class', 'bracket_depth')
GROUP BY model_id
HAVING count(head_gain) = 2
