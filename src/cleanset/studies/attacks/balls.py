"""The balls that bound attacks: L2 and Linf distances of two images, and whether an image of 8 bits lies within one."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cleanset.images.preprocessing import PixelPlanes

Norm = Literal["Linf", "L2"]
LEVELS = 255
_TOLERANCE = 1e-9
"""Levels added to a radius: eps times 255 may fall short, as 4/255 is not exact in binary."""


@dataclass(frozen=True, slots=True)
class Ball:
    """All images at a distance of at most `eps` (of pixels in 0..1) from another."""

    norm: Norm
    eps: float

    def levels(self) -> float:
        """The radius in levels of 8 bits."""
        return self.eps * LEVELS + _TOLERANCE

    def distance(self, one: PixelPlanes, other: PixelPlanes) -> float:
        """The distance of two images, of pixels in 0..1."""
        # differences of uint8 would wrap around
        difference = one.astype(np.int64) - other
        if self.norm == "Linf":
            return float(np.abs(difference).max()) / LEVELS
        return float(np.sqrt((difference**2).sum())) / LEVELS

    def contains(self, center: PixelPlanes, candidate: PixelPlanes) -> bool:
        """Whether the candidate lies in the ball around the center."""
        return self.distance(center, candidate) * LEVELS <= self.levels()
