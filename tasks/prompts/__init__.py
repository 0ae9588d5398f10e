"""Prompt sets: pairs of prompts that differ in what a behaviour depends on, those that ship and a user's own."""
