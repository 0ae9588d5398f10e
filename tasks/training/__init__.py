"""Training of one model: its stage, its loop, its checkpoints, and the device that it runs on."""
