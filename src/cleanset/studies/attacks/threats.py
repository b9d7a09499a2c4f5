"""Threat models: the attacks that bound one robust accuracy together.

A robust accuracy is of one threat model. Attacks that may take any image in the same ball around the image itself share
one. Every other attack has a threat model of its own: rotations, corruptions, a ball around a rotated image, or, with
boundary, the nearest image that it finds.
"""

from dataclasses import dataclass

from cleanset.studies.attacks.balls import LEVELS, Ball

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
