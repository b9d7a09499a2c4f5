"""The contest of source 004: models that may abstain, images that anyone may submit, and people who judge them.

T. B. Brown and others, "Unrestricted Adversarial Examples" (2018), arXiv:1809.08352.
"""
