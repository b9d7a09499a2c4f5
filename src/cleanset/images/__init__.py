"""Pixels: boxes, decoding, cropping, encoding, and the preprocessings of models."""
