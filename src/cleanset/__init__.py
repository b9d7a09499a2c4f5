"""A clean, human-verified subset of ImageNet's validation pictures for each of several models."""
