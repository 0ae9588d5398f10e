"""What linear probes read from heads and from the stream."""

ORDER = 110
