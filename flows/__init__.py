"""The flow, the commands, and the studies that ship."""
