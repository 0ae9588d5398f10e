"""Values, tables and text as people read them, and pages that are half generated."""
