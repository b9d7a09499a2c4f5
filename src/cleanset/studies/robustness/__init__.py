"""Robustness of the models on the finished sets: corruptions, perturbations, backgrounds, and their measures."""
