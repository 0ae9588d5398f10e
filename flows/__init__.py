"""What runs, and in which order: the flow, the commands, and the studies that ship."""
