"""Results as tables: rows written, the warehouse over them, claims judged on it, SQL for people, and study records."""
