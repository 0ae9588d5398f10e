"""Studies killed, starved and corrupted, and what held: `make faults`."""
