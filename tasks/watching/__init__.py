"""Everything that `headstream watch` shows of a run in another process, read from the disk alone."""
