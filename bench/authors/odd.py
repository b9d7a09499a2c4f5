"""Odd images, beside the photographs: programs differ on them first."""

import numpy as np
from PIL import Image

SEED = 71


def odd_images() -> dict[str, Image.Image]:
    """Eight images by name, RGB: flat, a gradient, noise, one pixel, tall, tiny, huge and grey."""
    drawn = np.random.default_rng(SEED)
    ramp = np.linspace(0, 255, 400).astype(np.uint8)
    grey = drawn.integers(0, 256, (300, 280), dtype=np.uint8)
    pixels = {
        "flat": np.full((300, 300, 3), (90, 120, 200), np.uint8),
        "gradient": np.broadcast_to(ramp[np.newaxis, :, np.newaxis], (300, 400, 3)),
        "noise": drawn.integers(0, 256, (260, 340, 3), dtype=np.uint8),
        "one pixel": np.full((1, 1, 3), (3, 200, 7), np.uint8),
        "tall": drawn.integers(0, 256, (2000, 40, 3), dtype=np.uint8),
        "tiny": drawn.integers(0, 256, (8, 9, 3), dtype=np.uint8),
        "huge": drawn.integers(0, 256, (3000, 4000, 3), dtype=np.uint8),
        "grey": np.repeat(grey[..., np.newaxis], 3, axis=2),
    }
    return {name: Image.fromarray(np.ascontiguousarray(each)) for name, each in pixels.items()}
