"""The explorer: one page beside a report in which a reader points at heads and tokens; its source is beside."""
