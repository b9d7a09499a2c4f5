"""Statistics that several parts need: bootstrap, confidence intervals of shares, coverage, seeds."""
