"""The study file: its schema, the config of every section, its cells, and messages about mistakes in it."""
