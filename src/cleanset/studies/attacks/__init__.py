"""Attacks on an edition's models, on its finished sets: those of Unrestricted Adversarial Examples and others."""
