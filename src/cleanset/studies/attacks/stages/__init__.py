"""The stages of an attack study, one module each: read, compute, write."""
