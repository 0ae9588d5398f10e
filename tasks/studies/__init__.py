"""The studies of a home: those that ship and its own, found by name, none in the place of another."""
