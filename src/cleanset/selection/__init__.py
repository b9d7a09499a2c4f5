"""The rules: which images may be in a class, which are, and what is counted."""
