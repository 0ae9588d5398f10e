"""What a study asks for: the schema of its file, the config of every section, its cells, and mistakes in it."""
