"""The static report of an edition."""
