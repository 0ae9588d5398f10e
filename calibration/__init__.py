"""Whether intervals cover, detectors keep quiet where there is nothing, and find what was planted."""
