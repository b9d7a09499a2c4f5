"""The tiers of candidates."""

TIERS = ("top5", "reserve", "relaxed")
"""In the order in which a class is filled."""
