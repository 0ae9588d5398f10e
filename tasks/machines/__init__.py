"""Processes and computers that work runs on: child processes, threads, a Ray cluster, GPU slots, and services."""
