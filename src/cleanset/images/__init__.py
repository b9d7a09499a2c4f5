"""Pixels: boxes, decoding, cropping, encoding, preprocessings of models, perceptual hashes and local features."""
