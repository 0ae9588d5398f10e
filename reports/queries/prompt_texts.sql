-- The prompt sets that were asked, each with a hash of its pairs, by which runs are compared.
SELECT
    prompts,
    md5(string_agg(DISTINCT concat_ws(chr(31), prompt, corrupt, answers::VARCHAR, wrong::VARCHAR), chr(10) ORDER BY concat_ws(
        chr(31), prompt, corrupt, answers::VARCHAR, wrong::VARCHAR
    ))) AS pairs_md5
FROM prompts
SEMI JOIN (FROM study_models WHERE study = $study) USING (model_id)
GROUP BY prompts
ORDER BY prompts
