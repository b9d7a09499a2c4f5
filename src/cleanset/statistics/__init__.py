"""Statistics that several parts need: intervals, tests, agreement, calibration, coverage, numberings, seeds."""
