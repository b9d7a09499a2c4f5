"""Finished sets: manifest and description, checking, rebuilding, packing, publishing, fetching, loading."""
