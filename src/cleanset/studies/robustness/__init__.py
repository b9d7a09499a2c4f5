"""Robustness of the models on the finished sets: corruptions, perturbations, backgrounds, and what is measured."""
