"""Differences between two score tables, two exports, or a score table and a published list."""
