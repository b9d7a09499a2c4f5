"""Attacks on models, judged by the files they leave: those of Unrestricted Adversarial Examples and others."""
