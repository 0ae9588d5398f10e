"""Circuits of a behaviour, found on pairs of prompts: a model's graph, effects of nodes and edges, circuits."""
