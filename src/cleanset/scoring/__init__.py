"""Models, and what they say of pictures."""
