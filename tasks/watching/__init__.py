"""What `headstream watch` sees of a run that goes on in another process, from what lies on the disk alone."""
