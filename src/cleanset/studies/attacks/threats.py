"""Balls that bound attacks, and threat models: the attacks that bound one robust accuracy together.

A robust accuracy is of one threat model. Attacks that may take any image in the same ball around the image itself share
one. Every other attack has a threat model of its own: rotations, corruptions, a ball around a rotated image, or, with
boundary, the nearest image that it finds.
"""

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
        """Whether the candidate is in the ball around the center."""
        return self.distance(center, candidate) * LEVELS <= self.levels()


PROBE = "probe"
"""In place of an attack's name: the searches of the probe for signs of gradient masking."""


@dataclass(frozen=True, slots=True)
class ThreatModel:
    """The attacks of one threat model."""

    name: str
    """The norm and the radius, or the name of the only attack."""

    attacks: tuple[str, ...]
    """The names of the attacks."""

    ball: Ball | None
    """The ball around the image that the attacks share; None for an attack with a threat model of its own."""

    is_searched_by_gradient: bool
    """Whether an attack follows the model's gradient, or tries all the changes that it may choose from.

    Without such an attack, the share of images that no attack breaks is only an upper bound.
    """

    @property
    def metric(self) -> str:
        """The name in `dvc metrics show`, which is the name of a folder."""
        return self.name.replace(" ", "_").replace("/", "_")


def ball_text(ball: Ball) -> str:
    """The norm and the radius, which only Linf has in levels: "Linf 4/255", "L2 0.2"."""
    return f"{ball.norm} {radius_text(ball.eps) if ball.norm == 'Linf' else f'{ball.eps:.4g}'}"


def radius_text(radius: float) -> str:
    """A radius below 1 that is a whole number of levels as a fraction of 255; otherwise four digits."""
    whole = round(radius * LEVELS)
    # params.yaml has 4/255, which is read as a float
    if 0 < radius < 1 and whole > 0 and abs(radius * LEVELS - whole) < 1e-9:
        return f"{whole}/{LEVELS}"
    return f"{radius:.4g}"
