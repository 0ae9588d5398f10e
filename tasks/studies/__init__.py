"""The studies of a home: those that ship and its own, found by name; no two share a name."""
