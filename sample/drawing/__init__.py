"""Drawn images: objects before backdrops, with a flaw or without, the same on every machine."""
