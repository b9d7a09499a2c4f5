"""Finished sets: their manifest and description, checking, rebuilding, packing and loading them."""
