"""Training one model: its process, its loop, the checkpoints that it leaves, and the device that it runs on."""
