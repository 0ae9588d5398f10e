-- What the scores of a head are, from the schema's own comments.
SELECT column_name AS score, comment AS what_it_is
FROM duckdb_columns()
WHERE
    table_name = 'heads'
    AND column_name IN (
        'induction_random_period', 'induction_natural', 'prefix_matching', 'previous_token', 'duplicate_token',
        'bos_attention', 'positional_offset', 'positional_share', 'entropy'
    )
ORDER BY column_index
