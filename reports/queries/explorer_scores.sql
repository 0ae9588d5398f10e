-- Scores that the explorer can colour heads by, and what they are.
SELECT column_name AS score, comment AS description
FROM duckdb_columns()
WHERE table_name = 'heads' AND data_type = 'DOUBLE' AND column_name NOT LIKE '%_sem'
ORDER BY column_index
