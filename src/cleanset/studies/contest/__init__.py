"""The contest of Unrestricted Adversarial Examples: models that may abstain, images of any origin, and their judges.

T. B. Brown and others, "Unrestricted Adversarial Examples" (2018), arXiv:1809.08352. To be read in this order: rules,
entries, judging, log; courses and state, which say what each line does; standing; entering, images, runs; the pages.
"""
