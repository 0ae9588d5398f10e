"""Where work runs: child processes, threads or a Ray cluster, slots of GPUs, and services beside this process."""
